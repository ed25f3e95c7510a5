#ifndef TEST_CHOICE_H
#define TEST_CHOICE_H

#include <string.h>
#include "poisson_gpu.h"

/* A method, its smoother and its preconditioner in one number, as tables of tests have them: their bits differ. */
static inline void set_choice(pg_desc *desc, unsigned choice)
{
    const unsigned smoothers = PG_SMOOTH_RBGS | PG_SMOOTH_JACOBI | PG_SMOOTH_CHEBYSHEV | PG_SMOOTH_LINES;
    const unsigned preconds = PG_PRECOND_CYCLE | PG_PRECOND_DIAGONAL | PG_PRECOND_NONE | PG_PRECOND_AINV |
                              PG_PRECOND_AINV2 | PG_PRECOND_DIRECT;
    const unsigned smoother = choice & smoothers, precond = choice & preconds;
    memcpy(&desc->smoother, &smoother, sizeof smoother);    /* also two of them, which no enum has */
    memcpy(&desc->precond, &precond, sizeof precond);
    desc->flags = choice & ~(smoothers | preconds);
}
static inline unsigned choice_of(const pg_desc *desc)
{
    return desc->flags | (unsigned)desc->smoother | (unsigned)desc->precond;
}

#endif
