/* The loops of cavity_flow.h over the cells. Included once a precision, with real and NAME(x), say x_f64, defined.

   A body is a function of one cell (i, j, k), of which LOOP makes NAME(each_body)(fields, memory): it runs where the
   arrays are. Bodies return a number that is not negative, or NaN; the largest of all cells stays in *fields.largest
   until it is set to 0. Numbers are compared by their bits: the same order, in which NaN is larger than anything.

   Every velocity has a ring of one cell around the n cells; component a of a cell is on the face towards its lower
   neighbour along a, so it is known on the walls (index 0 and n along a: always 0), and values in the ring along the
   other axes are such that the mean of both sides of a wall is the wall's speed. p and f have no ring. Beside another
   rank's cells the ring, and one plane beyond p, have that rank's values. */

/* Adams-Bashforth, without the pressure: next = velocity + now * (rate of this step) + before * (rate of the last). */
static ON_DEVICE double NAME(predict)(const struct fields *g, int i, int j, int k)
{
    const int cell[3] = {i, j, k};
    const size_t m = ring_index(g, i, j, k);
    const real advect = (real)(0.25 / g->h), diffuse = (real)(1 / (g->re * g->h * g->h));
    const real now = (real)g->now, before = (real)g->before;
    for (int a = 0; a < 3; a++) {
        if (a >= g->dim || cell[a] + g->lo[a] == 0) continue;
        const size_t sa = g->stride[a];
        const real *u = (const real *)g->velocity[a];
        real rate = 0;
        for (int b = 0; b < 3; b++) {
            if (b >= g->dim) continue;
            const size_t sb = g->stride[b];
            const real *v = (const real *)g->velocity[b];
            const real high = (u[m] + u[m + sb]) * (v[m + sb] + v[m + sb - sa]);    /* 4 times the flux of u along b */
            const real low = (u[m] + u[m - sb]) * (v[m] + v[m - sa]);
            rate += advect * (low - high) + diffuse * (u[m + sb] - 2 * u[m] + u[m - sb]);
        }
        real *last = (real *)g->rate[a] + m;
        ((real *)g->next[a])[m] = u[m] + now * rate + before * *last;
        *last = rate;
    }
    return 0;
}
LOOP(predict)

/* f = -div(next) / dt */
static ON_DEVICE double NAME(divergence)(const struct fields *g, int i, int j, int k)
{
    const size_t m = ring_index(g, i, j, k);
    real sum = 0;
    for (int a = 0; a < 3; a++) {
        if (a >= g->dim) continue;
        const real *u = (const real *)g->next[a];
        sum += u[m + g->stride[a]] - u[m];
    }
    ((real *)g->f)[cell_index(g, i, j, k)] = sum * (real)(-1 / (g->h * g->dt));
    return 0;
}
LOOP(divergence)

/* velocity = next - dt grad p, and what follows from it in the ring. Returns how much the cell's velocity changes. */
static ON_DEVICE double NAME(correct)(const struct fields *g, int i, int j, int k)
{
    const int cell[3] = {i, j, k};
    const size_t m = ring_index(g, i, j, k), c = cell_index(g, i, j, k);
    const size_t below[3] = {1, (size_t)g->n[0], (size_t)g->n[0] * (size_t)g->n[1]};
    const real *p = (const real *)g->p, slope = (real)(g->dt / g->h);
    double change = 0;
    for (int a = 0; a < 3; a++) {
        if (a >= g->dim || cell[a] + g->lo[a] == 0) continue;
        real *u = (real *)g->velocity[a];
        const real value = ((const real *)g->next[a])[m] - slope * (p[c] - p[c - below[a]]);
        change += fabs((double)(value - u[m]));
        u[m] = value;
        for (int b = 0; b < 3; b++) {
            if (b == a || b >= g->dim) continue;
            const real lid = a == 0 && b == 1;              /* speed of the wall above */
            if (cell[b] == 0) u[m - g->stride[b]] = -value;
            if (cell[b] == g->n[b] - 1) u[m + g->stride[b]] = 2 * lid - value;
        }
    }
    return change;
}
LOOP(correct)
