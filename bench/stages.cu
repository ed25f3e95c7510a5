// See stages.h. A solve with stages left out is the solver's own, run with a table of operations of which some do
// nothing.
#include "../poisson_gpu.cu"

#include "stages.h"

static const pgi_ops *stages_ops;    // all the operations
static int stages_kept;

static void stages_pass(pg_solver *s, const pgi_level *l, const pgi_direct_pass &pass, pgi_rhs from, pgi_grid to)
{
    const int transforms = pass.kind == PGI_FORWARD || pass.kind == PGI_BACKWARD;
    if (stages_kept & (transforms ? STAGE_TRANSFORM : STAGE_MIDDLE)) stages_ops->direct_pass(s, l, pass, from, to);
}

pg_status stages_run(pg_solver *s, int kept, int solves)
{
    PGI_TRY(pgi_begin_call(s));
    PGI_TRY(pgi_enter_call(s, NULL, NULL, 0, 0));
    pgi_ops ops = *s->ops;
    ops.direct_pass = stages_pass;
    stages_ops = s->ops;
    stages_kept = kept;
    s->ops = &ops;
    s->together = 1;
    for (int q = 0; q < solves; q++) pgi_solve_direct(s, &s->level[0], pgi_level_rhs(&s->level[0], 1), s->level[0].u);
    s->ops = stages_ops;
    return pgi_leave_call(s, NULL, s->desc.stride_u, s->stage_u);
}

pg_status stages_precondition(pg_solver *s, int cycles)
{
    const pgi_level *l = &s->level[0];
    const pgi_grid r = s->mixed ? l->f : s->vector[PGI_R];
    PGI_TRY(pgi_begin_call(s));
    PGI_TRY(pgi_enter_call(s, NULL, NULL, 0, 0));
    pgi_set_inner(s, s->mixed);
    for (int q = 0; q < cycles; q++) pgi_cycle(s, 0, l->u, pgi_rhs_of(r), 1, 1);
    pgi_set_inner(s, 0);
    return pgi_leave_call(s, NULL, s->desc.stride_u, s->stage_u);
}

pg_status stages_create(const pg_desc *desc, pg_solver **solver, stages_plan *plan)
{
    pgi_hierarchy *lines = NULL;
    pg_solver *s = (pg_solver *)calloc(1, sizeof *s);
    *solver = NULL;
    if (!s) return pgi_no_memory("not enough host memory for a solver");
    pg_status status = pgi_prepare(desc, s, &lines);
    plan->in_one_kernel = s->direct.small[0].blocks > 0;
#if PGI_GPU
    if (status == PG_OK && plan->in_one_kernel) {    // planned anew, as a larger problem is
        pgi_arena measure = {NULL, NULL, 0};
        pgi_line *const *const line = lines->line[0];
        int other;
        s->direct.small[0].blocks = s->direct.passes = 0;
        pgi_plan_passes(s, line, s->direct.lines.line < 0 ? PGI_THERE_AND_BACK : PGI_ELIMINATE,
                        pgi_line_axis(&s->work, line, &other));
        for (int a = 0; a < 3; a++) s->direct.along[a].fourier = pgi_fourier_of(s->direct.along[a].series[0]);
        status = pgi_plan_gpu_passes(s);
        pgi_layout(s, lines, &measure);
        s->bytes = (measure.used + PGI_ALIGN - 1) / PGI_ALIGN * PGI_ALIGN;
    }
#endif
    if (status == PG_OK) status = pgi_build(s, lines);
    pgi_hierarchy_free(lines);
    if (status != PG_OK) {
        pg_destroy(s);
        return status;
    }
    const pgi_direct &d = s->direct;
    plan->middle = d.lines.line >= 0 ? "tridiagonal" : s->cuda ? "transform, division" : "division";
    *solver = s;
    return PG_OK;
}
