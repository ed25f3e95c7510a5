/* The stages of a PG_DIRECT solve, and the preconditioner of PG_CG, for bench.c: the public functions do not tell them
   apart. stages.cu has the whole
   library in it; link with it instead. */
#ifndef STAGES_H
#define STAGES_H
#include "poisson_gpu.h"
#ifdef __cplusplus
extern "C" {
#endif

/* What a run of stages keeps. */
enum { STAGE_TRANSFORM = 1, STAGE_MIDDLE = 2 };

typedef struct stages_plan {
    const char *middle;           /* what comes between the transforms there and those back */
    int in_one_kernel;            /* pg_create makes a solver without stages */
} stages_plan;

/* As pg_create, with PG_DIRECT in desc; but the solver always has stages. */
pg_status stages_create(const pg_desc *desc, pg_solver **solver, stages_plan *plan);

/* Runs the stages that are kept of so many solves, one after the other, with u and f of the last pg_solve. Every solve
   begins with f. */
pg_status stages_run(pg_solver *solver, int kept, int solves);

/* Runs the cycle that preconditions PG_CG so many times: from 0, on the residual that the last pg_solve has left. */
pg_status stages_precondition(pg_solver *solver, int cycles);

#ifdef __cplusplus
}
#endif
#endif
