/* Bad input is refused by name and changes nothing; what the header allows is taken; defaults and workspace are as
   promised. */
#define _POSIX_C_SOURCE 200112L
#include "common.h"
#include <float.h>
#include <limits.h>
#include <time.h>

enum { NX = 6, NY = 5, NZ = 4, POINTS = NX * NY * NZ };

static pg_desc box(pg_backend backend)
{
    pg_desc desc = {0};
    desc.n[0] = NX, desc.n[1] = NY, desc.n[2] = NZ;
    desc.backend = backend;
    return desc;
}

static void fill(double *u, double *f, int count)
{
    rng r = {7};
    for (int q = 0; q < count; q++) u[q] = rng_uniform(&r, -1, 1), f[q] = rng_uniform(&r, -1, 1);
}

/* A table goes on after a row that failed, so that one run shows all of them. */
static int failures;
static const char *row;

#define EXPECT(condition, ...)                                                                                        \
    do {                                                                                                              \
        if (!(condition)) failures++, print_error("%s: ", row), print_error(__VA_ARGS__), print_error("\n");          \
    } while (0)

static void expect_refusal(pg_status got, pg_status expected, const char *message, const char *field, const char *value)
{
    EXPECT(got == expected, "%s instead of %s", pg_status_string(got), pg_status_string(expected));
    if (got == PG_OK) return;
    EXPECT(message && *message, "no message");
    if (!message) return;
    EXPECT(strstr(message, field), "\"%s\" is not named in \"%s\"", field, message);
    EXPECT(strstr(message, value), "\"%s\" is not in \"%s\"", value, message);
}

/* ---- The descriptor ---------------------------------------------------------------------------------------------- */

static const double uneven[NX + 2] = {0, 1, 2, 4, 5, 6, 8, 9}, falling[NX + 2] = {0, 1, 2, 4, 3.5, 6, 8, 9},
                    doubled[NX + 2] = {0, 1, 2, 4, 4, 6, 8, 9}, with_nan[NX + 2] = {0, 1, 2, NAN, 5, 6, 8, 9},
                    with_inf[NX + 2] = {0, 1, 2, 4, 5, 6, 8, INFINITY}, positive[NX + 1] = {1, 2, 3, 4, 3, 2, 1.5},
                    with_zero[NX + 1] = {1, 2, 0, 4, 3, 2, 1}, with_negative[NX + 1] = {1, 2, -2.5, 4, 3, 2, 1},
                    bad_end[NX + 1] = {1, 2, 3, 4, 3, 2, -1.5}, nan_end[NX + 1] = {NAN, 2, 3, 4, 3, 2, 1},
                    open_ends[NX + 1] = {0, 2, 3, 4, 3, 2, 0}, equal_ends[NX + 1] = {1, 2, 3, 4, 3, 2, 1};

static void face(pg_desc *d, int index, pg_face_kind kind, double value, double a, double b)
{
    d->face[index].kind = kind, d->face[index].value = value;
    d->face[index].a = a, d->face[index].b = b;
}

static void *alloc_nothing(void *user, size_t bytes, pg_memory memory, pg_stream stream)
{
    (void)bytes, (void)memory, (void)stream;
    ++*(int *)user;
    return NULL;
}
static void free_nothing(void *user, void *pointer, size_t bytes, pg_memory memory, pg_stream stream)
{
    (void)user, (void)bytes, (void)memory, (void)stream;
    assert_null(pointer);
}

/* X(name, what spoils the good descriptor d, status, field, value): the message must name field and value. */
#define BAD_DESCRIPTORS(X)                                                                                            \
    X(nx_zero, d->n[0] = 0, PG_ERROR_ARGUMENT, "n[0]", "is 0")                                                        \
    X(nx_negative, d->n[0] = -6, PG_ERROR_ARGUMENT, "n[0]", "-6")                                                     \
    X(ny_negative, d->n[1] = -5, PG_ERROR_ARGUMENT, "n[1]", "-5")                                                     \
    X(nz_negative, d->n[2] = INT_MIN, PG_ERROR_ARGUMENT, "n[2]", "-2147483648")                                       \
    X(product_overflows, d->n[0] = d->n[1] = d->n[2] = INT_MAX, PG_ERROR_ARGUMENT, "n", "2147483647")                 \
    X(product_is_2_to_63, d->n[0] = d->n[1] = d->n[2] = 1 << 21, PG_ERROR_ARGUMENT, "n", "2097152")                   \
    X(bytes_overflow, (d->n[0] = d->n[1] = INT_MAX, d->n[2] = 1), PG_ERROR_ARGUMENT, "n", "2147483647")               \
    X(dim_four, d->dim = 4, PG_ERROR_ARGUMENT, "dim", "is 4")                                                         \
    X(dim_negative, d->dim = -1, PG_ERROR_ARGUMENT, "dim", "is -1")                                                   \
    X(dim_below_sizes, d->dim = 2, PG_ERROR_ARGUMENT, "n[2]", "is 4")                                                 \
    X(struct_size, d->struct_size = 8, PG_ERROR_ARGUMENT, "struct_size is 8", "begin with {0}")                       \
    X(struct_size_larger, d->struct_size = 123456, PG_ERROR_ARGUMENT, "struct_size", "123456")                        \
    X(centring, d->centring[1] = (pg_centring)3, PG_ERROR_ARGUMENT, "centring[1]", "is 3")                            \
    X(memory, d->memory = (pg_memory)3, PG_ERROR_ARGUMENT, "memory", "is 3")                                          \
    X(backend, d->backend = (pg_backend)3, PG_ERROR_ARGUMENT, "backend", "is 3")                                      \
    X(device_negative, d->device = -3, PG_ERROR_ARGUMENT, "device", "-3")                                             \
                                                                                                                      \
    X(rows_of_u_overlap, d->stride_u[0] = 5, PG_ERROR_ARGUMENT, "stride_u", "{5, 25}")                                \
    X(rows_of_u_backward, d->stride_u[0] = -6, PG_ERROR_ARGUMENT, "stride_u", "-6")                                   \
    X(planes_of_u_overlap, d->stride_u[1] = 29, PG_ERROR_ARGUMENT, "stride_u", "{6, 29}")                             \
    X(padded_planes_of_u_overlap, (d->stride_u[0] = 8, d->stride_u[1] = 37), PG_ERROR_ARGUMENT, "stride_u", "{8, 37}")\
    X(planes_of_u_backward, d->stride_u[1] = -30, PG_ERROR_ARGUMENT, "stride_u", "-30")                               \
    X(rows_of_f_overlap, d->stride_f[0] = 1, PG_ERROR_ARGUMENT, "stride_f", "{1, 5}")                                 \
    X(rows_of_f_backward, d->stride_f[0] = -60, PG_ERROR_ARGUMENT, "stride_f", "-60")                                 \
    X(planes_of_f_overlap, d->stride_f[1] = 29, PG_ERROR_ARGUMENT, "stride_f", "{6, 29}")                             \
    X(planes_of_f_backward, d->stride_f[1] = -300, PG_ERROR_ARGUMENT, "stride_f", "-300")                             \
    X(stride_overflows, d->stride_u[1] = INT64_MAX, PG_ERROR_ARGUMENT, "stride_u", "9223372036854775807")             \
    X(stride_overflows_later, d->stride_f[0] = INT64_MAX / 4, PG_ERROR_ARGUMENT, "stride_f", "2305843009213693951")   \
                                                                                                                      \
    X(flag_unknown, set_choice(d, 0x20000000), PG_ERROR_ARGUMENT, "flags", "0x20000000")                                  \
    X(flag_unknown_high, set_choice(d, 0x80000000u | PG_F32), PG_ERROR_ARGUMENT, "flags", "0x80000000")                   \
    X(two_precisions, set_choice(d, PG_F64 | PG_F32), PG_ERROR_ARGUMENT, "precision", "0x3")                              \
    X(two_precisions_mixed, set_choice(d, PG_F32 | PG_MIXED), PG_ERROR_ARGUMENT, "precision", "0x6")                      \
    X(two_methods, set_choice(d, PG_VCYCLE | PG_FMG), PG_ERROR_ARGUMENT, "method", "0x280")                               \
    X(two_sweeps, set_choice(d, PG_JACOBI | PG_SOR), PG_ERROR_ARGUMENT, "method", "0x50")                                 \
    X(three_methods, set_choice(d, PG_RBGS | PG_SOR | PG_WCYCLE), PG_ERROR_ARGUMENT, "method", "0x160")                   \
    X(two_smoothers, set_choice(d, PG_SMOOTH_RBGS | PG_SMOOTH_JACOBI), PG_ERROR_ARGUMENT, "smoother", "0x30000")          \
    X(two_smoothers_chebyshev, set_choice(d, PG_SMOOTH_JACOBI | PG_SMOOTH_CHEBYSHEV), PG_ERROR_ARGUMENT,                  \
      "smoother", "0x60000")                                                                                          \
    X(smoother_in_flags, d->flags = PG_FMG | PG_SMOOTH_RBGS, PG_ERROR_ARGUMENT, "smoother of the desc", "0x10000")     \
    X(precond_in_flags, d->flags = PG_CG | PG_PRECOND_AINV, PG_ERROR_ARGUMENT, "precond of the desc", "0x1000000")     \
    X(smoother_unknown, d->smoother = (pg_smoother)7, PG_ERROR_ARGUMENT, "smoother is 0x7", "CHEBYSHEV")                          \
    X(precond_unknown, d->precond = (pg_precond)3, PG_ERROR_ARGUMENT, "precond is 0x3", "AINV2")                              \
    X(smoother_of_sor, set_choice(d, PG_SOR | PG_SMOOTH_RBGS), PG_ERROR_UNSUPPORTED, "PG_SOR", "PG_SMOOTH_RBGS")                 \
    X(smoother_of_rbgs, set_choice(d, PG_RBGS | PG_SMOOTH_JACOBI), PG_ERROR_UNSUPPORTED, "PG_RBGS", "PG_SMOOTH_JACOBI")            \
    X(smoother_of_jacobi, set_choice(d, PG_JACOBI | PG_SMOOTH_CHEBYSHEV), PG_ERROR_UNSUPPORTED, "PG_JACOBI", "PG_SMOOTH_CHEBYSHEV")   \
    X(mixed_jacobi, set_choice(d, PG_MIXED | PG_JACOBI), PG_ERROR_UNSUPPORTED, "PG_MIXED", "PG_JACOBI")                   \
    X(mixed_rbgs, set_choice(d, PG_MIXED | PG_RBGS), PG_ERROR_UNSUPPORTED, "PG_MIXED", "PG_RBGS")                         \
    X(mixed_sor, set_choice(d, PG_MIXED | PG_SOR), PG_ERROR_UNSUPPORTED, "PG_MIXED", "PG_SOR")                            \
    X(symmetric_jacobi, set_choice(d, PG_SYMMETRIC | PG_JACOBI), PG_ERROR_UNSUPPORTED, "PG_SYMMETRIC", "PG_JACOBI")       \
    X(symmetric_sor, set_choice(d, PG_SYMMETRIC | PG_SOR), PG_ERROR_UNSUPPORTED, "PG_SYMMETRIC", "PG_SOR")                \
    X(symmetric_unequal, (set_choice(d, PG_SYMMETRIC | PG_VCYCLE), d->nu_pre = 3, d->nu_post = 1), PG_ERROR_ARGUMENT,     \
      "PG_SYMMETRIC", "3 and 1")                                                                                      \
                                                                                                                      \
    X(h_nan, d->h[0] = NAN, PG_ERROR_ARGUMENT, "h[0]", "nan")                                                         \
    X(h_negative, d->h[1] = -0.25, PG_ERROR_ARGUMENT, "h[1]", "-0.25")                                                \
    X(h_infinite, d->h[2] = INFINITY, PG_ERROR_ARGUMENT, "h[2]", "inf")                                               \
    X(h_square_underflows, d->h[1] = 1e-200, PG_ERROR_ARGUMENT, "h[1]", "1e-200")                                     \
    X(h_square_overflows, d->h[2] = 1e200, PG_ERROR_ARGUMENT, "h[2]", "1e+200")                                       \
    X(h_square_underflows_f32, (d->h[0] = 1e-25, set_choice(d, PG_F32)), PG_ERROR_ARGUMENT, "h[0]", "1e-25")              \
    X(h_and_coord, (d->h[0] = 0.125, d->coord[0] = uneven), PG_ERROR_ARGUMENT, "h[0]", "coord[0]")                    \
    X(coord_falls, d->coord[0] = falling, PG_ERROR_ARGUMENT, "coord[0]", "3.5")                                       \
    X(coord_twice, d->coord[0] = doubled, PG_ERROR_ARGUMENT, "coord[0]", "[4] is 4")                                  \
    X(coord_nan, d->coord[0] = with_nan, PG_ERROR_ARGUMENT, "coord[0]", "nan")                                        \
    X(coord_infinite, d->coord[0] = with_inf, PG_ERROR_ARGUMENT, "coord[0]", "inf")                                   \
    X(cell_edge_nan, (d->centring[0] = PG_CELL, d->coord[0] = with_nan), PG_ERROR_ARGUMENT, "coord[0]", "nan")        \
                                                                                                                      \
    X(weight_zero, d->weight[0] = with_zero, PG_ERROR_ARGUMENT, "weight[0]", "[2] is 0")                              \
    X(weight_negative, d->weight[0] = with_negative, PG_ERROR_ARGUMENT, "weight[0]", "-2.5")                          \
    X(weight_nan, d->weight[0] = nan_end, PG_ERROR_ARGUMENT, "weight[0]", "nan")                                      \
    X(weight_infinite, d->weight[0] = with_inf + 2, PG_ERROR_ARGUMENT, "weight[0]", "inf")                            \
    X(conductance_zero, d->conductance[0] = with_zero, PG_ERROR_ARGUMENT, "conductance[0]", "[2] is 0")               \
    X(conductance_negative, d->conductance[0] = with_negative, PG_ERROR_ARGUMENT, "conductance[0]", "-2.5")           \
    X(conductance_end_negative, d->conductance[0] = bad_end, PG_ERROR_ARGUMENT, "conductance[0]", "-1.5")             \
    X(conductance_end_nan, d->conductance[0] = nan_end, PG_ERROR_ARGUMENT, "conductance[0]", "nan")                   \
                                                                                                                      \
    X(face_kind, face(d, PG_Y_HIGH, (pg_face_kind)9, 0, 0, 0), PG_ERROR_ARGUMENT, "face y high", "kind 9; it must be PG_DIRICHLET, ") \
    X(robust, d->robust = (pg_robust)9, PG_ERROR_ARGUMENT, "robust is 9", "PG_ROBUST_LABYRINTH")                      \
    X(face_value_nan, face(d, PG_X_HIGH, PG_NEUMANN, NAN, 0, 0), PG_ERROR_ARGUMENT, "face x high", "nan")             \
    X(face_value_infinite, face(d, PG_Z_LOW, PG_DIRICHLET, INFINITY, 0, 0), PG_ERROR_ARGUMENT, "face z low", "inf")   \
    X(periodic_low_only, face(d, PG_X_LOW, PG_PERIODIC, 0, 0, 0), PG_ERROR_ARGUMENT, "x low", "PG_PERIODIC")          \
    X(periodic_high_only, face(d, PG_Z_HIGH, PG_PERIODIC, 0, 0, 0), PG_ERROR_ARGUMENT, "z high", "PG_PERIODIC")       \
    X(periodic_unequal_ends, (set_ends(d, 0, "PP"), d->conductance[0] = positive), PG_ERROR_ARGUMENT,                 \
      "conductance[0]", "1.5")                                                                                        \
    X(periodic_zero_ends, (set_ends(d, 0, "PP"), d->conductance[0] = open_ends), PG_ERROR_ARGUMENT,                   \
      "conductance[0]", "is 0")                                                                                       \
    X(no_sweep_at_all, d->nu_pre = d->nu_post = PG_NONE, PG_ERROR_ARGUMENT, "nu_pre", "PG_NONE")                      \
    X(omega_of_rbgs, (set_choice(d, PG_RBGS), d->omega = 1.5), PG_ERROR_UNSUPPORTED, "omega", "1.5")                      \
    X(omega_of_chebyshev, (set_choice(d, PG_SMOOTH_CHEBYSHEV), d->omega = 0.5), PG_ERROR_UNSUPPORTED, "omega", "0.5")     \
    X(robin_b_zero, face(d, PG_Y_LOW, PG_ROBIN, 0, 1, 0), PG_ERROR_ARGUMENT, "face y low", "b = 0")                   \
    X(robin_a_times_b_negative, face(d, PG_Y_LOW, PG_ROBIN, 0, 1, -0.75), PG_ERROR_ARGUMENT, "face y low", "-0.75")   \
    X(robin_a_negative, face(d, PG_X_HIGH, PG_ROBIN, 0, -1.25, 0.5), PG_ERROR_ARGUMENT, "face x high", "-1.25")       \
    X(robin_a_nan, face(d, PG_Z_HIGH, PG_ROBIN, 0, NAN, 1), PG_ERROR_ARGUMENT, "face z high", "nan")                  \
    X(robin_b_nan, face(d, PG_Z_HIGH, PG_ROBIN, 0, 1, NAN), PG_ERROR_ARGUMENT, "face z high", "nan")                  \
    X(robin_b_infinite, face(d, PG_Z_LOW, PG_ROBIN, 0, 1, INFINITY), PG_ERROR_ARGUMENT, "face z low", "inf")          \
    X(robin_value_nan, face(d, PG_Z_LOW, PG_ROBIN, NAN, 1, 1), PG_ERROR_ARGUMENT, "face z low", "nan")                \
                                                                                                                      \
    X(alpha_negative, (d->alpha = -0.125, set_choice(d, PG_FMG)), PG_ERROR_ARGUMENT, "alpha", "-0.125")                                        \
    X(alpha_nan, d->alpha = NAN, PG_ERROR_ARGUMENT, "alpha", "nan")                                                   \
    X(alpha_infinite, d->alpha = INFINITY, PG_ERROR_ARGUMENT, "alpha", "inf")                                         \
    X(beta_negative, d->beta = -2, PG_ERROR_ARGUMENT, "beta", "is -2")                                                \
    X(beta_nan, d->beta = NAN, PG_ERROR_ARGUMENT, "beta", "nan")                                                      \
    X(beta_infinite, d->beta = INFINITY, PG_ERROR_ARGUMENT, "beta", "inf")                                            \
    X(omega_two, (set_choice(d, PG_SOR), d->omega = 2), PG_ERROR_ARGUMENT, "omega", "is 2;")                              \
    X(omega_two_in_f32, (set_choice(d, PG_SOR | PG_F32), d->omega = 1.99999999), PG_ERROR_ARGUMENT, "omega", "is 2;")       \
    X(omega_above_two, d->omega = 2.5, PG_ERROR_ARGUMENT, "omega", "2.5")                                             \
    X(omega_negative, d->omega = -0.5, PG_ERROR_ARGUMENT, "omega", "-0.5")                                            \
    X(omega_nan, (set_choice(d, PG_JACOBI), d->omega = NAN), PG_ERROR_ARGUMENT, "omega", "nan")                           \
    X(nu_pre_too_many, d->nu_pre = 17, PG_ERROR_ARGUMENT, "nu_pre", "17")                                             \
    X(nu_pre_negative, d->nu_pre = -2, PG_ERROR_ARGUMENT, "nu_pre", "-2")                                             \
    X(nu_post_too_many, d->nu_post = 1000, PG_ERROR_ARGUMENT, "nu_post", "1000")                                      \
    X(nu_post_negative, d->nu_post = -7, PG_ERROR_ARGUMENT, "nu_post", "-7")                                          \
    X(fmg_cycles_too_many, d->fmg_cycles = 17, PG_ERROR_ARGUMENT, "fmg_cycles", "17")                                 \
    X(fmg_cycles_negative, d->fmg_cycles = -1, PG_ERROR_ARGUMENT, "fmg_cycles", "-1")                                 \
    X(inner_cycles_too_many, (set_choice(d, PG_MIXED), d->inner_cycles = 17), PG_ERROR_ARGUMENT, "inner_cycles", "17")    \
    X(inner_cycles_negative, (set_choice(d, PG_MIXED), d->inner_cycles = -4), PG_ERROR_ARGUMENT, "inner_cycles", "-4")    \
    X(coarsest_too_small, d->coarsest = 7, PG_ERROR_ARGUMENT, "coarsest", "is 7")                                     \
    X(coarsest_too_large, d->coarsest = 133, PG_ERROR_ARGUMENT, "coarsest", "is 133")                                 \
    X(coarsest_negative, d->coarsest = -1, PG_ERROR_ARGUMENT, "coarsest", "is -1")                                    \
    X(alloc_without_free, d->allocator.alloc = alloc_nothing, PG_ERROR_ARGUMENT, "allocator", "free")                 \
    X(free_without_alloc, d->allocator.free = free_nothing, PG_ERROR_ARGUMENT, "allocator", "alloc")

#define SPOIL(name, spoil, status, field, value)                                                                      \
    static void spoil_##name(pg_desc *d) { (void)(spoil); }
#define SPOIL_CALL(name, spoil, status, field, value) {#name, spoil_##name, status, field, value},

typedef struct bad_desc {
    const char *name;
    void (*spoil)(pg_desc *desc);
    pg_status status;
    const char *field, *value;
} bad_desc;

BAD_DESCRIPTORS(SPOIL)
static const bad_desc bad_descs[] = {BAD_DESCRIPTORS(SPOIL_CALL)};

static void every_bad_descriptor_is_refused_by_name(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    double u[POINTS], f[POINTS], u_before[POINTS], bystander_u[POINTS], first_u[POINTS];
    fill(u, f, POINTS);
    memcpy(u_before, u, sizeof u);

    const pg_desc good = box(backend);
    pg_solver *bystander = create(&good);
    OK(pg_solve(bystander, first_u, f, NULL), bystander);

    failures = 0;
    for (size_t q = 0; q < sizeof bad_descs / sizeof *bad_descs; q++) {
        const bad_desc *bad = &bad_descs[q];
        int allocations = 0;
        pg_desc desc = good;
        desc.allocator.user = &allocations;
        row = bad->name;
        bad->spoil(&desc);

        pg_solver *solver = bystander;
        expect_refusal(pg_create(&desc, &solver), bad->status, pg_last_error(NULL), bad->field, bad->value);
        EXPECT(solver == NULL, "the handle is not NULL");
        if (solver != bystander) pg_destroy(solver);

        size_t bytes = 0;
        expect_refusal(pg_workspace_bytes(&desc, &bytes), bad->status, pg_last_error(NULL), bad->field, bad->value);

        pg_report report;
        expect_refusal(pg_solve_once(&desc, u, f, &report), bad->status, pg_last_error(NULL), bad->field, bad->value);
        EXPECT(memcmp(u, u_before, sizeof u) == 0, "u was touched");
        memcpy(u, u_before, sizeof u);
        EXPECT(allocations == 0, "something was allocated");

        const pg_status status = pg_solve(bystander, bystander_u, f, NULL);
        EXPECT(status == PG_OK && memcmp(bystander_u, first_u, sizeof first_u) == 0, "another handle was affected");
    }
    pg_destroy(bystander);
    assert_int_equal(failures, 0);
}

/* The same for what the header allows, at its edges. */
#define GOOD_DESCRIPTORS(X)                                                                                           \
    X(all_default, (void)d)                                                                                           \
    X(struct_size, d->struct_size = sizeof *d)                                                                        \
    X(absent_sizes_zero, d->n[1] = d->n[2] = 0)                                                                       \
    X(single_unknown, d->n[0] = d->n[1] = d->n[2] = 1)                                                                \
    X(dim_above_sizes, (d->dim = 3, d->n[2] = 1))                                                                     \
    X(absent_axis_is_ignored, (d->n[2] = 1, d->h[2] = NAN, d->coord[2] = falling, d->weight[2] = with_nan,            \
                               d->stride_u[1] = 3, face(d, PG_Z_LOW, PG_PERIODIC, NAN, 0, 0),                         \
                               d->centring[2] = (pg_centring)9))                                                      \
    X(exact_strides, (d->stride_u[0] = NX, d->stride_u[1] = NX * NY, d->stride_f[0] = NX, d->stride_f[1] = NX * NY))  \
    X(coordinates, d->coord[0] = uneven)                                                                              \
    X(closed_ends, (d->conductance[0] = open_ends, d->centring[0] = PG_CELL))                                         \
    X(periodic_equal_ends, (set_ends(d, 0, "PP"), d->conductance[0] = equal_ends))                                    \
    X(robin_both_negative, face(d, PG_Y_LOW, PG_ROBIN, 1, -1, -0.5))                                                  \
    X(robin_a_zero, face(d, PG_Y_LOW, PG_ROBIN, 1, 0, 2))                                                             \
    X(omega_just_below_two, (set_choice(d, PG_SOR), d->omega = 1.9))                                                      \
    X(most_sweeps, (d->nu_pre = d->nu_post = d->fmg_cycles = 16))                                                     \
    X(no_pre_smoothing, d->nu_pre = PG_NONE)                                                                          \
    X(no_post_smoothing, (d->nu_post = PG_NONE, set_choice(d, PG_VCYCLE)))                                                \
    X(symmetric_three, (set_choice(d, PG_SYMMETRIC | PG_VCYCLE), d->nu_pre = d->nu_post = 3))                             \
    X(named_defaults, set_choice(d, PG_F64 | PG_FMG | PG_SMOOTH_RBGS))                                                    \
    X(mixed, (set_choice(d, PG_MIXED | PG_WCYCLE), d->inner_cycles = 16))

#define VARY(name, vary) static void vary_##name(pg_desc *d) { (void)(vary); }
#define VARY_CALL(name, vary) {#name, vary_##name, PG_OK, "", ""},

GOOD_DESCRIPTORS(VARY)
static const bad_desc good_descs[] = {GOOD_DESCRIPTORS(VARY_CALL)};

static void every_allowed_descriptor_is_taken(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    double u[POINTS], f[POINTS];
    fill(u, f, POINTS);

    failures = 0;
    for (size_t q = 0; q < sizeof good_descs / sizeof *good_descs; q++) {
        pg_desc desc = box(backend);
        row = good_descs[q].name;
        good_descs[q].spoil(&desc);
        pg_report report = {0};
        const pg_status status = pg_solve_once(&desc, u, f, &report);
        EXPECT(status == PG_OK, "%s", pg_last_error(NULL));
        EXPECT(status != PG_OK || report.outcome == PG_CONVERGED, "%s", report.message);
    }
    assert_int_equal(failures, 0);
}

/* ---- Remedies: what a refusal says would help is accepted -------------------------------------------------------- */

#define ANY_PRECISION (PG_F64 | PG_F32 | PG_MIXED)
#define ANY_METHOD                                                                                                       \
    (PG_JACOBI | PG_RBGS | PG_SOR | PG_VCYCLE | PG_WCYCLE | PG_FMG | PG_DIRECT | PG_FASTEST | PG_CG | PG_PIPECG |     \
     PG_BICGSTAB | PG_PIPEBICGSTAB)
#define ANY_PRECONDITIONER                                                                                               \
    (PG_PRECOND_CYCLE | PG_PRECOND_DIAGONAL | PG_PRECOND_NONE | PG_PRECOND_AINV | PG_PRECOND_AINV2 | PG_PRECOND_DIRECT)
#define ANY_SMOOTHER (PG_SMOOTH_RBGS | PG_SMOOTH_JACOBI | PG_SMOOTH_CHEBYSHEV | PG_SMOOTH_LINES)
#define NAMED(flag, group) {#flag, flag, group}

static const struct { const char *name; unsigned flag, group; } flag_names[] = {
    NAMED(PG_F64, ANY_PRECISION), NAMED(PG_F32, ANY_PRECISION), NAMED(PG_MIXED, ANY_PRECISION), NAMED(PG_JACOBI, ANY_METHOD),
    NAMED(PG_RBGS, ANY_METHOD), NAMED(PG_SOR, ANY_METHOD), NAMED(PG_VCYCLE, ANY_METHOD), NAMED(PG_WCYCLE, ANY_METHOD),
    NAMED(PG_FMG, ANY_METHOD), NAMED(PG_DIRECT, ANY_METHOD), NAMED(PG_FASTEST, ANY_METHOD), NAMED(PG_CG, ANY_METHOD),
    NAMED(PG_PIPECG, ANY_METHOD), NAMED(PG_BICGSTAB, ANY_METHOD), NAMED(PG_PIPEBICGSTAB, ANY_METHOD),
    NAMED(PG_PRECOND_CYCLE, ANY_PRECONDITIONER), NAMED(PG_PRECOND_DIAGONAL, ANY_PRECONDITIONER),
    NAMED(PG_PRECOND_NONE, ANY_PRECONDITIONER), NAMED(PG_PRECOND_AINV, ANY_PRECONDITIONER),
    NAMED(PG_PRECOND_AINV2, ANY_PRECONDITIONER), NAMED(PG_PRECOND_DIRECT, ANY_PRECONDITIONER),
    NAMED(PG_SMOOTH_RBGS, ANY_SMOOTHER), NAMED(PG_SMOOTH_JACOBI, ANY_SMOOTHER), NAMED(PG_SMOOTH_CHEBYSHEV, ANY_SMOOTHER),
    NAMED(PG_SMOOTH_LINES, ANY_SMOOTHER), NAMED(PG_SYMMETRIC, 0), NAMED(PG_KEEP_CYCLES, 0), NAMED(PG_COARSEN_CELLS, 0),
    NAMED(PG_UPWIND, 0)};

/* Does to a descriptor what the sentence proposes: leaves a name out, or uses it in the place of others of its group. */
static void follow(pg_desc *d, const char *name, int leave_out)
{
    if (!strcmp(name, "omega")) d->omega = 0;
    if (!strcmp(name, "nu_pre")) d->nu_pre = 0;
    if (!strcmp(name, "nu_post")) d->nu_post = 0;
    if (!strcmp(name, "fmg_cycles")) d->fmg_cycles = 0;
    if (!strcmp(name, "inner_cycles")) d->inner_cycles = 0;
    if (!strcmp(name, "robust")) d->robust = 0;
    for (size_t q = 0; q < sizeof flag_names / sizeof *flag_names; q++)
        if (!strcmp(name, flag_names[q].name))
            set_choice(d, (choice_of(d) & ~(leave_out ? flag_names[q].flag : flag_names[q].group)) |
                       (leave_out ? 0 : flag_names[q].flag));
}

static void expect_creation(const pg_desc *d, const char *message, const char *change)
{
    pg_solver *solver = NULL;
    EXPECT(pg_create(d, &solver) == PG_OK, "\"%s\"\n    %s leads to \"%s\"", message, change, pg_last_error(NULL));
    pg_destroy(solver);
}

/* Follows all remedies of a refusal, which stand behind its last semicolon; returns how many there are. */
static int follow_remedies(const pg_desc *refused, const char *message)
{
    char text[512];
    int leave_out = 0, count = 0;
    const char *const remedies = strrchr(message, ';');
    snprintf(text, sizeof text, "%s", remedies ? remedies + 1 : "");
    if (strstr(text, " and all of its options") || strstr(text, "leave out all flags")) {
        pg_desc plain = *refused;
        set_choice(&plain, plain.flags & (strstr(text, "all flags") ? 0 : ANY_PRECISION)), plain.omega = 0;
        plain.nu_pre = plain.nu_post = plain.fmg_cycles = plain.inner_cycles = plain.coarsest = 0;
        plain.robust = PG_ROBUST_AUTO;
        expect_creation(&plain, message, "the default");
        return 1;
    }
    for (char *word = strtok(text, " ,"); word; word = strtok(NULL, " ,")) {
        if (!strcmp(word, "leave") || !strcmp(word, "use")) leave_out = word[0] == 'l';
        pg_desc d = *refused;
        follow(&d, word, leave_out);
        if (!memcmp(&d, refused, sizeof d)) continue;
        count++;
        expect_creation(&d, message, word);
    }
    return count;
}

/* One of some problems, from an empty box on, in the precision of the flags. */
static void set_situation(pg_desc *d, int situation)
{
    enum { N = 12 };
    static double wide[N * N], ones[N + 1], rises[N + 1];
    static float narrow[N * N];
    static unsigned char mask[N * N], top[N * N];
    static const pg_cell_value surface = {{3, N - 2, 0}, PG_Y_HIGH, 2, 0.5};
    for (int i = 0; i < N; i++) top[N * (N - 1) + i] = PG_AIR;
    for (int i = 0; i < N * N; i++) wide[i] = 1 + i % 3, narrow[i] = (float)wide[i];
    for (int i = 0; i <= N; i++) ones[i] = 1, rises[i] = 1 + i;
    d->n[0] = d->n[1] = N, d->centring[0] = d->centring[1] = PG_CELL;
    if (situation == 1 || situation == 3) d->cells.mask = mask;
    if (situation == 2 || situation == 3) d->cells.beta_cell = d->flags & PG_F32 ? (void *)narrow : (void *)wide;
    if (situation == 4) d->velocity[0] = 2;
    if (situation == 5) d->conductance[0] = d->conductance[1] = rises;
    if (situation == 6) set_ends(d, 0, "PP"), d->conductance[0] = ones, d->weight[0] = rises;
    if (situation == 7) d->cells.mask = mask, d->centring[0] = PG_NODE, d->conductance[1] = rises;
    if (situation == 8) d->cells.mask = top, d->cells.air_value = &surface, d->cells.air_values = 1;
}

static void remedies_are_accepted(void **state)
{
    enum { SITUATIONS = 9, NUMBERS = 6 };
    static const unsigned methods[] = {0,      PG_JACOBI, PG_RBGS,    PG_SOR, PG_VCYCLE, PG_WCYCLE,
                                       PG_FMG, PG_DIRECT, PG_FASTEST, PG_CG,  PG_PIPECG, PG_BICGSTAB,
                                       PG_PIPEBICGSTAB};
    static const unsigned options[] = {
        0, PG_PRECOND_CYCLE, PG_PRECOND_DIAGONAL, PG_PRECOND_AINV, PG_PRECOND_DIRECT, PG_SMOOTH_RBGS, PG_SMOOTH_LINES,
        PG_SMOOTH_CHEBYSHEV, PG_SYMMETRIC, PG_KEEP_CYCLES, PG_COARSEN_CELLS, PG_UPWIND, PG_MIXED,
        PG_MIXED | PG_PRECOND_AINV, PG_SMOOTH_JACOBI | PG_PRECOND_NONE, PG_F32 | PG_PRECOND_AINV2};
    enum { METHODS_TRIED = sizeof methods / sizeof *methods, OPTIONS_TRIED = sizeof options / sizeof *options };
    const pg_backend backend = backend_or_skip(state);
    int refused = 0, impossible = 0;
    failures = 0;
    for (int q = 0; q < SITUATIONS * METHODS_TRIED * OPTIONS_TRIED * NUMBERS * 2; q++) {
        const int rest = q / SITUATIONS / METHODS_TRIED / OPTIONS_TRIED, number = rest % NUMBERS, sign = rest / NUMBERS;
        if ((number > 0 && q % 5) || (small_run() && q % 4)) continue;
        pg_desc d = {.backend = backend, .alpha = sign ? -1 : 1};
        set_choice(&d, methods[q / SITUATIONS % METHODS_TRIED] | options[q / SITUATIONS / METHODS_TRIED % OPTIONS_TRIED]);
        set_situation(&d, q % SITUATIONS);
        d.omega = number == 1 ? 1.25 : 0, d.nu_pre = d.nu_post = number == 2 ? 3 : 0;
        d.fmg_cycles = number == 3 ? 2 : 0, d.inner_cycles = number == 4 ? 3 : 0, d.robust = number == 5 ? 1 : 0;
        pg_solver *solver = NULL;
        char message[512];
        row = describe(&d);
        const pg_status status = pg_create(&d, &solver);
        pg_destroy(solver);
        if (status == PG_OK) continue;
        snprintf(message, sizeof message, "%s", pg_last_error(NULL));
        const int count = follow_remedies(&d, message);
        refused++, impossible += count == 0;
        EXPECT(count > 0 || (sign && strstr(message, "no method here takes")), "no remedy in \"%s\"", message);
    }
    assert_int_equal(failures, 0);
    assert_true(refused > full_or_small(1000, 250) && impossible > full_or_small(100, 25) && impossible < refused / 2);
}

/* Several wrong options at once: where the defaults would do, the refusal says what would help. */
static void several_wrong_options_have_a_remedy(void **state)
{
    static const unsigned methods[] = {0, PG_JACOBI, PG_SOR, PG_VCYCLE, PG_FMG, PG_DIRECT, PG_CG, PG_PIPEBICGSTAB},
                          options[] = {0, PG_SMOOTH_JACOBI, PG_SMOOTH_LINES, PG_PRECOND_CYCLE, PG_PRECOND_AINV,
                                       PG_SYMMETRIC, PG_KEEP_CYCLES, PG_COARSEN_CELLS, PG_UPWIND};
    const pg_backend backend = backend_or_skip(state);
    rng r = {5};
    int refused = 0;
    failures = 0;
    for (int q = 0; q < full_or_small(4000, 800); q++) {
        pg_desc d = {.backend = backend, .alpha = 1}, plain;
        set_choice(&d, methods[rng_int(&r, 0, 7)] | options[rng_int(&r, 0, 8)] | options[rng_int(&r, 0, 8)]);
        set_situation(&d, rng_int(&r, 0, 8));
        plain = d;
        set_choice(&plain, 0);
        if (rng_int(&r, 0, 2) == 0) d.omega = rng_int(&r, 0, 1) ? 1.25 : 2.5;
        if (rng_int(&r, 0, 2) == 0) d.nu_pre = rng_int(&r, 0, 1) ? 3 : 17;
        if (rng_int(&r, 0, 5) == 0) d.fmg_cycles = rng_int(&r, 0, 1) ? 2 : -1;
        if (rng_int(&r, 0, 2) == 0) d.coarsest = rng_int(&r, 0, 1) ? 2 : 16;
        pg_solver *solver = NULL;
        char message[512];
        row = describe(&d);
        const pg_status status = pg_create(&d, &solver);
        pg_destroy(solver);
        if (status == PG_OK) continue;
        refused++;
        snprintf(message, sizeof message, "%s", pg_last_error(NULL));
        expect_creation(&plain, message, "the default");
        EXPECT(strstr(message, "it must be") || strstr(message, "make them equal") || follow_remedies(&d, message) > 0,
               "no remedy in \"%s\"", message);
    }
    assert_int_equal(failures, 0);
    assert_true(refused > full_or_small(2000, 400));
}

/* Options that do not apply are refused, with their value and a remedy, unless they say what is so anyway; what
   pg_query_desc tells is accepted, and so has none of them. */
static void options_that_do_not_apply_are_refused(void **state)
{
    enum { N = 12 };
    static unsigned char mask[N * N];
    static const struct {
        unsigned flags;
        int masked, nu_pre, nu_post, fmg_cycles, inner_cycles, robust;
        double omega;
        const char *refused, *value;    /* NULL: accepted */
    } cases[] = {
        {PG_CG | PG_PRECOND_DIAGONAL, 0, 0, 0, 0, 0, 0, 1.5, "omega", "1.5"},
        {PG_CG | PG_PRECOND_DIAGONAL, 0, 3, 0, 0, 0, 0, 0, "nu_pre", "3"},
        {PG_BICGSTAB | PG_PRECOND_AINV, 0, 0, 4, 0, 0, 0, 0, "nu_post", "4"},
        {PG_JACOBI, 0, 2, 0, 0, 0, 0, 0, "nu_pre", "2"}, {PG_DIRECT, 0, 0, 1, 0, 0, 0, 0, "nu_post", "1"},
        {PG_VCYCLE, 0, 0, 0, 5, 0, 0, 0, "fmg_cycles", "5"}, {PG_FMG, 1, 0, 0, 6, 0, 0, 0, "fmg_cycles", "6"},
        {PG_VCYCLE, 0, 0, 0, 0, 7, 0, 0, "inner_cycles", "7"}, {PG_FASTEST, 0, 8, 0, 0, 0, 0, 0, "nu_pre", "8"},
        {PG_MIXED | PG_CG, 0, 0, 0, 0, 9, 0, 0, "inner_cycles", "9"}, {0, 0, 0, 0, 0, 0, 1, 0, "robust", "1"},
        {PG_DIRECT, 0, 0, 0, 0, 0, 3, 0, "robust", "3"}, {PG_SOR, 1, 0, 2, 0, 0, 0, 0, "nu_post", "2"},
        {PG_CG | PG_PRECOND_DIAGONAL, 0, PG_NONE, PG_NONE, 0, 0, 0, 0, NULL, ""},
        {PG_RBGS, 0, 0, 0, 0, 0, 0, 1, NULL, ""}, {PG_DIRECT | PG_MIXED, 0, 0, 0, 0, 1, PG_NONE, 0, NULL, ""},
        {0, 0, 3, 1, 2, 0, 0, 0, NULL, ""}, {PG_CG, 0, 3, 3, 0, 0, 0, 0.9, NULL, ""},
        {PG_CG | PG_PRECOND_DIAGONAL, 1, 0, 0, 0, 0, 2, 0, NULL, ""}, {PG_PIPEBICGSTAB, 1, 0, 0, 0, 0, 0, 0, NULL, ""}};
    const pg_backend backend = backend_or_skip(state);
    failures = 0;
    for (size_t q = 0; q < sizeof cases / sizeof *cases; q++) {
        pg_desc d = {.n = {N, N}, .centring = {PG_CELL, PG_CELL}, .backend = backend}, again;
        set_choice(&d, cases[q].flags);
        d.cells.mask = cases[q].masked ? mask : NULL, d.omega = cases[q].omega;
        d.nu_pre = cases[q].nu_pre, d.nu_post = cases[q].nu_post, d.fmg_cycles = cases[q].fmg_cycles;
        d.inner_cycles = cases[q].inner_cycles, d.robust = cases[q].robust;
        row = describe(&d);
        pg_solver *solver = NULL;
        const pg_status status = pg_create(&d, &solver);
        if (cases[q].refused)
            expect_refusal(status, PG_ERROR_UNSUPPORTED, pg_last_error(NULL), cases[q].refused, cases[q].value);
        if (cases[q].refused) EXPECT(strstr(pg_last_error(NULL), "leave out"), "no remedy: %s", pg_last_error(NULL));
        if (!cases[q].refused) EXPECT(status == PG_OK, "\"%s\"", pg_last_error(NULL));
        if (status == PG_OK) {
            OK(pg_query_desc(solver, &again), solver);
            expect_creation(&again, "pg_query_desc", "the same");
        }
        pg_destroy(solver);
    }
    assert_int_equal(failures, 0);
}

/* ---- When to stop ------------------------------------------------------------------------------------------------ */

#define BAD_STOPS(X)                                                                                                  \
    X(stop_struct_size, s->struct_size = 4321, "struct_size", "4321")                                                 \
    X(rtol_nan, s->rtol = NAN, "rtol", "nan")                                                                         \
    X(rtol_negative, s->rtol = -0.5, "rtol", "-0.5")                                                                  \
    X(rtol_infinite, s->rtol = INFINITY, "rtol", "inf")                                                               \
    X(atol_nan, s->atol = NAN, "atol", "nan")                                                                         \
    X(atol_negative, s->atol = -1e-3, "atol", "-0.001")                                                               \
    X(atol_infinite, s->atol = INFINITY, "atol", "inf")                                                               \
    X(relative_to_first, s->relative_to_first = 5, "relative_to_first", "5")                                          \
    X(min_iter_negative, s->min_iter = -3, "min_iter", "-3")                                                          \
    X(max_iter_negative, s->max_iter = -9, "max_iter", "-9")                                                          \
    X(min_above_max, (s->min_iter = 12, s->max_iter = 8), "min_iter", "12")                                           \
    X(min_above_default, (s->min_iter = 2, s->rtol = PG_NONE), "min_iter is 2", "is 1 by default; raise max_iter")    \
    X(check_negative, s->check = -6, "check", "-6")                                                                   \
    X(norm, s->norm = (pg_norm_kind)8, "norm is 8", "PG_NORM_L1")                                                     \
    X(guess, s->guess = (pg_guess)7, "guess is 7", "PG_GUESS_ZERO")

typedef struct bad_stop {
    const char *name;
    void (*spoil)(pg_stop *stop);
    const char *field, *value;
} bad_stop;

#define SPOIL_STOP(name, spoil, field, value)                                                                         \
    static void spoil_##name(pg_stop *s) { (void)(spoil); }
#define SPOIL_STOP_CALL(name, spoil, field, value) {#name, spoil_##name, field, value},
BAD_STOPS(SPOIL_STOP)
static const bad_stop bad_stops[] = {BAD_STOPS(SPOIL_STOP_CALL)};

static void every_bad_stop_is_refused_by_name(void **state)
{
    const pg_desc desc = box(backend_or_skip(state));
    double u[POINTS], f[POINTS], u_before[POINTS], first_u[POINTS];
    fill(u, f, POINTS);
    memcpy(u_before, u, sizeof u);
    pg_solver *solver = create(&desc);
    OK(pg_solve(solver, first_u, f, NULL), solver);

    failures = 0;
    for (size_t q = 0; q < sizeof bad_stops / sizeof *bad_stops; q++) {
        pg_stop stop = {0};
        row = bad_stops[q].name;
        bad_stops[q].spoil(&stop);
        expect_refusal(pg_solve(solver, u, f, &stop), PG_ERROR_ARGUMENT, pg_last_error(solver), bad_stops[q].field,
                       bad_stops[q].value);
        EXPECT(memcmp(u, u_before, sizeof u) == 0, "u was touched");
        const pg_status status = pg_solve(solver, u, f, NULL);
        EXPECT(status == PG_OK && memcmp(u, first_u, sizeof u) == 0, "the handle is not usable afterwards");
        memcpy(u, u_before, sizeof u);
    }
    pg_destroy(solver);
    assert_int_equal(failures, 0);
}

/* ---- Numbers from end to end ------------------------------------------------------------------------------------- */

/* Each number and enum of a struct, with values that no caller means: a call takes them or refuses them in a sentence, and
   with the sanitizer of undefined behaviour nothing else happens. */
typedef struct field {
    size_t at;
    char type;                      /* i: int or enum, c: number of entries, l: int64_t, d: double, z: size_t */
} field;
#define F(type, S, name) {offsetof(S, name), type}
#define F3(type, S, name) F(type, S, name[0]), F(type, S, name[1]), F(type, S, name[2])
#define FACE(S, q) F('i', S, face[q].kind), F('d', S, face[q].value), F('d', S, face[q].a), F('d', S, face[q].b)

static const field desc_fields[] = {
    F('z', pg_desc, struct_size), F3('i', pg_desc, n), F('i', pg_desc, dim), F3('i', pg_desc, centring), F3('d', pg_desc, h),
    FACE(pg_desc, 0), FACE(pg_desc, 1), FACE(pg_desc, 2), FACE(pg_desc, 5), F('d', pg_desc, alpha), F('d', pg_desc, beta),
    F('l', pg_desc, cells.stride_mask[0]), F('l', pg_desc, cells.stride_mask[1]), F('c', pg_desc, cells.air_values),
    F('c', pg_desc, cells.solid_fluxes), F('i', pg_desc, robust), F3('d', pg_desc, velocity), F('i', pg_desc, batch),
    F3('l', pg_desc, stride_u), F3('l', pg_desc, stride_f), F('i', pg_desc, memory), F('i', pg_desc, flags),
    F('i', pg_desc, smoother), F('i', pg_desc, precond), F('d', pg_desc, omega), F('i', pg_desc, nu_pre),
    F('i', pg_desc, nu_post), F('i', pg_desc, fmg_cycles), F('i', pg_desc, coarsest), F('i', pg_desc, inner_cycles),
    F('i', pg_desc, backend), F('i', pg_desc, device), F('z', pg_desc, workspace_bytes), F('i', pg_desc, comm.kind),
    F3('i', pg_desc, lo), F3('i', pg_desc, hi), F('d', pg_desc, time_limit)};
static const field stop_fields[] = {
    F('z', pg_stop, struct_size), F('d', pg_stop, rtol), F('d', pg_stop, atol), F('i', pg_stop, relative_to_first),
    F('i', pg_stop, min_iter), F('i', pg_stop, max_iter), F('i', pg_stop, check), F('i', pg_stop, norm), F('i', pg_stop, guess)};
static const field dense_fields[] = {
    F('z', pg_dense_desc, struct_size), F('i', pg_dense_desc, n), F('l', pg_dense_desc, lda), F('i', pg_dense_desc, memory),
    F('i', pg_dense_desc, flags), F('d', pg_dense_desc, omega), F('i', pg_dense_desc, backend),
    F('i', pg_dense_desc, device), F('z', pg_dense_desc, workspace_bytes)};
static const field cells_fields[] = {
    F('l', pg_cells, stride_mask[0]), F('l', pg_cells, stride_mask[1]), F('c', pg_cells, air_values),
    F('c', pg_cells, solid_fluxes)};
static const field value_fields[] = {
    F3('i', pg_cell_value, cell), F('i', pg_cell_value, face), F('d', pg_cell_value, value), F('d', pg_cell_value, theta)};
static const field face_fields[] = {F('i', pg_face, kind), F('d', pg_face, value), F('d', pg_face, a), F('d', pg_face, b)};
enum { EXTREMES = 7 };

static void set_extreme(void *to, const field *f, int q)
{
    static const int ints[EXTREMES] = {INT_MIN, -2, -1, 6, 100, 0x7ffffff0, INT_MAX};
    static const int64_t longs[EXTREMES] = {INT64_MIN, -2, -1, 6, 100, INT64_MAX / 8, INT64_MAX};
    static const size_t sizes[EXTREMES] = {1, 2, 3, 6, 100, SIZE_MAX / 8, SIZE_MAX};
    const double doubles[EXTREMES] = {NAN, INFINITY, -INFINITY, DBL_MAX, -DBL_MAX, 5e-324, -1};
    char *const at = (char *)to + f->at;
    if (f->type == 'i') memcpy(at, &ints[q], sizeof ints[q]);
    if (f->type == 'c') memcpy(at, &ints[q % 3], sizeof ints[q]);    /* more would be read */
    if (f->type == 'l') memcpy(at, &longs[q], sizeof longs[q]);
    if (f->type == 'z') memcpy(at, &sizes[q], sizeof sizes[q]);
    if (f->type == 'd') memcpy(at, &doubles[q], sizeof doubles[q]);
}

/* Boxes in which different rules hold. */
static void set_corner(pg_desc *d, int corner)
{
    static unsigned char mask[100 * POINTS];    /* for the largest n and stride that are taken */
    static double conductance[101];
    static const pg_cell_value air = {{1, 1, 0}, PG_X_LOW, 2, 0}, surface = {{1, 1, 0}, PG_X_LOW, 2, 0.5};
    mask[NX] = PG_AIR;
    for (int q = 0; q <= 100; q++) conductance[q] = 1 + q % 3;
    for (int a = 0; a < 3 && corner > 2 && corner < 7; a++) d->centring[a] = PG_CELL;
    if (corner == 1) set_choice(d, PG_DIRECT), d->alpha = -1;
    if (corner == 2) d->velocity[0] = 2, d->velocity[1] = -1, d->batch = 2;
    if (corner == 3) d->cells.mask = mask, d->cells.air_value = &air, d->cells.air_values = 1;
    if (corner == 4) for (int a = 0; a < 3; a++) set_ends(d, a, "OO");
    if (corner == 5) set_choice(d, PG_MIXED | PG_CG), set_ends(d, 1, "PP"), set_ends(d, 2, "NN");
    if (corner == 6) set_choice(d, PG_F32 | PG_SOR), set_ends(d, 0, "RR");
    if (corner == 7) d->cells.mask = mask, d->cells.air_value = &surface, d->cells.air_values = 1, d->conductance[0] = conductance;
}

static void expect_answer(pg_status status, const pg_solver *solver, const char *call, size_t at, int q)
{
    const char *const why = pg_last_error(solver);
    EXPECT(status >= PG_OK && status < PG_STATUS_COUNT && (status == PG_OK) == !*why, "%s, field at %zu, value %d: %d \"%s\"",
           call, at, q, (int)status, why);
}

static void no_number_is_undefined_behaviour(void **state)
{
    enum { CORNERS = 8, ROOM = 4 * POINTS };
    const pg_backend backend = backend_or_skip(state);
    static double u[ROOM], f[ROOM], out[2 * ROOM];
    fill(u, f, ROOM);
    failures = 0, row = "extremes";
    for (int corner = 0; corner < CORNERS; corner++) {
        pg_desc good = box(backend);
        set_corner(&good, corner);
        for (size_t m = 0; m < sizeof desc_fields / sizeof *desc_fields; m++)
            for (int q = 0; q < EXTREMES; q++) {
                if (small_run() && (corner + (int)m + q) % 3) continue;
                pg_desc d = good;
                pg_solver *solver = NULL;
                int lo[3], hi[3];
                set_extreme(&d, &desc_fields[m], q);
                expect_answer(pg_query_part(&d, lo, hi), NULL, "pg_query_part", desc_fields[m].at, q);
                expect_answer(pg_create(&d, &solver), NULL, "pg_create", desc_fields[m].at, q);
                pg_destroy(solver);
            }
        pg_solver *const solver = create(&good);
        for (size_t m = 0; m < sizeof stop_fields / sizeof *stop_fields; m++)
            for (int q = 0; q < EXTREMES; q++) {
                pg_stop stop = {.guess = PG_GUESS_ZERO, .rtol = 1e-3, .max_iter = 100};    /* to the end takes a minute */
                set_extreme(&stop, &stop_fields[m], q);
                expect_answer(pg_solve(solver, u, f, &stop), solver, "pg_solve", stop_fields[m].at, q);
            }
        for (int q = 0; q < EXTREMES; q++) {
            static const field number = {0, 'i'}, real = {0, 'd'};
            static int labels[ROOM];
            int i, count;
            double a, x = 0;
            pg_report report;
            set_extreme(&i, &number, q), set_extreme(&a, &real, q);
            for (int axis = 0; axis < 3; axis++)
                expect_answer(pg_gradient(solver, u, axis, out, (pg_where)i), solver, "pg_gradient", 0, q);
            expect_answer(pg_gradient(solver, u, i, out, PG_AT_FACES), solver, "pg_gradient", 1, q);
            expect_answer(pg_norm(solver, u, (pg_norm_kind)i, &x), solver, "pg_norm", 0, q);
            if (i < 0) expect_answer(pg_smooth(solver, u, f, i), solver, "pg_smooth", 0, q);
            if (i < 0) expect_answer(pg_cycle(solver, u, f, i), solver, "pg_cycle", 0, q);
            count = i;
            expect_answer(pg_get_parts(solver, NULL, labels, &count, NULL, NULL), solver, "pg_get_parts", 0, q);
            for (size_t m = 0; m < sizeof face_fields / sizeof *face_fields; m++) {
                pg_face faces[6];
                memcpy(faces, good.face, sizeof faces);
                set_extreme(&faces[q % 6], &face_fields[m], q);
                expect_answer(pg_set_faces(solver, faces), solver, "pg_set_faces", face_fields[m].at, q);
            }
            for (size_t m = 0; m < sizeof cells_fields / sizeof *cells_fields; m++) {
                pg_cells cells = {.mask = good.cells.mask, .air_value = good.cells.air_value};
                set_extreme(&cells, &cells_fields[m], q);
                expect_answer(pg_set_cells(solver, &cells), solver, "pg_set_cells", cells_fields[m].at, q);
            }
            for (size_t m = 0; m < sizeof value_fields / sizeof *value_fields; m++) {
                pg_cell_value value = {{1, 1, 0}, PG_X_LOW, 2, corner == 7 ? 0.25 : 0};
                const pg_cells cells = {.air_value = &value, .air_values = 1};
                set_extreme(&value, &value_fields[m], q);
                expect_answer(pg_set_cells(solver, &cells), solver, "pg_set_cells", value_fields[m].at, q);
            }
            expect_answer(pg_set_alpha(solver, a), solver, "pg_set_alpha", 0, q);
            expect_answer(pg_get_report(solver, &report), solver, "pg_get_report", 0, q);
            memcpy(&report.outcome, &i, sizeof i);
            FILE *const nowhere = fopen("/dev/null", "w");
            if (nowhere) pg_progress(nowhere, &report), fclose(nowhere);
        }
        pg_destroy(solver);
    }
    for (size_t m = 0; m < sizeof dense_fields / sizeof *dense_fields; m++)
        for (int q = 0; q < EXTREMES; q++) {
            static const double A[10000] = {4};
            pg_dense_desc d = {.n = 1, .A = A, .backend = backend};
            pg_solver *solver = NULL;
            set_extreme(&d, &dense_fields[m], q);
            expect_answer(pg_dense_create(&d, &solver), NULL, "pg_dense_create", dense_fields[m].at, q);
            pg_destroy(solver);
        }
    assert_int_equal(pg_progress(NULL, NULL), 0);
    assert_int_equal(failures, 0);
}

/* ---- Pointers ---------------------------------------------------------------------------------------------------- */

static void null_arguments_are_refused(void **state)
{
    const pg_desc desc = box(backend_or_skip(state));
    double u[POINTS], f[POINTS], number;
    size_t bytes;
    pg_report report;
    pg_solver *solver = NULL;
    fill(u, f, POINTS);

    assert_int_equal(pg_create(NULL, &solver), PG_ERROR_ARGUMENT);
    assert_null(solver);
    assert_true(*pg_last_error(NULL));
    assert_int_equal(pg_create(&desc, NULL), PG_ERROR_ARGUMENT);
    assert_int_equal(pg_workspace_bytes(NULL, &bytes), PG_ERROR_ARGUMENT);
    assert_int_equal(pg_workspace_bytes(&desc, NULL), PG_ERROR_ARGUMENT);
    assert_int_equal(pg_solve_once(NULL, u, f, NULL), PG_ERROR_ARGUMENT);
    assert_int_equal(pg_solve_once(&desc, NULL, f, NULL), PG_ERROR_ARGUMENT);
    assert_int_equal(pg_solve_once(&desc, u, NULL, NULL), PG_ERROR_ARGUMENT);

    pg_desc queried;
    assert_int_equal(pg_query_desc(NULL, &queried), PG_ERROR_ARGUMENT);
    assert_int_equal(pg_solve(NULL, u, f, NULL), PG_ERROR_ARGUMENT);
    assert_int_equal(pg_get_report(NULL, &report), PG_ERROR_ARGUMENT);
    assert_int_equal(pg_set_faces(NULL, desc.face), PG_ERROR_ARGUMENT);
    assert_int_equal(pg_set_alpha(NULL, 1), PG_ERROR_ARGUMENT);
    assert_int_equal(pg_set_stream(NULL, NULL), PG_ERROR_ARGUMENT);
    assert_int_equal(pg_smooth(NULL, u, f, 1), PG_ERROR_ARGUMENT);
    assert_int_equal(pg_cycle(NULL, u, f, 1), PG_ERROR_ARGUMENT);
    assert_int_equal(pg_apply(NULL, u, f), PG_ERROR_ARGUMENT);
    assert_int_equal(pg_residual(NULL, u, f, f), PG_ERROR_ARGUMENT);
    assert_int_equal(pg_norm(NULL, u, PG_NORM_L2, &number), PG_ERROR_ARGUMENT);
    assert_int_equal(pg_dot(NULL, u, NULL, &number), PG_ERROR_ARGUMENT);
    assert_int_equal(pg_dot(NULL, u, u, &number), PG_ERROR_ARGUMENT);
    assert_non_null(pg_last_error(NULL));
    pg_destroy(NULL);

    solver = create(&desc);
    assert_int_equal(pg_query_desc(solver, NULL), PG_ERROR_ARGUMENT);
    assert_int_equal(pg_get_report(solver, NULL), PG_ERROR_ARGUMENT);
    assert_int_equal(pg_set_faces(solver, NULL), PG_ERROR_ARGUMENT);
    assert_int_equal(pg_solve(solver, NULL, f, NULL), PG_ERROR_ARGUMENT);
    assert_non_null(strstr(pg_last_error(solver), "u"));
    assert_int_equal(pg_solve(solver, u, NULL, NULL), PG_ERROR_ARGUMENT);
    assert_non_null(strstr(pg_last_error(solver), "f"));
    assert_int_equal(pg_smooth(solver, NULL, f, 1), PG_ERROR_ARGUMENT);
    assert_int_equal(pg_cycle(solver, u, NULL, 1), PG_ERROR_ARGUMENT);
    assert_int_equal(pg_apply(solver, NULL, u), PG_ERROR_ARGUMENT);
    assert_int_equal(pg_apply(solver, u, NULL), PG_ERROR_ARGUMENT);
    assert_int_equal(pg_residual(solver, u, f, NULL), PG_ERROR_ARGUMENT);
    assert_int_equal(pg_norm(solver, NULL, PG_NORM_L2, &number), PG_ERROR_ARGUMENT);
    assert_int_equal(pg_norm(solver, u, PG_NORM_L2, NULL), PG_ERROR_ARGUMENT);
    assert_int_equal(pg_dot(solver, u, NULL, NULL), PG_ERROR_ARGUMENT);
    assert_int_equal(pg_dot(solver, NULL, u, &number), PG_ERROR_ARGUMENT);
    OK(pg_solve(solver, u, f, NULL), solver);
    OK(pg_get_report(solver, &report), solver);
    assert_int_equal(report.outcome, PG_CONVERGED);
    pg_destroy(solver);
}

static void overlapping_arrays_are_refused(void **state)
{
    const pg_desc desc = box(backend_or_skip(state));
    double array[3 * POINTS], before[3 * POINTS], unused[3 * POINTS];
    fill(array, unused, 3 * POINTS);
    memcpy(before, array, sizeof array);
    pg_solver *solver = create(&desc);

    double *const middle = array + POINTS;
    const int shifts[] = {0, 1, -1, POINTS - 1, 1 - POINTS};
    for (size_t q = 0; q < sizeof shifts / sizeof *shifts; q++) {
        double *other = middle + shifts[q];
        assert_int_equal(pg_solve(solver, middle, other, NULL), PG_ERROR_ARGUMENT);
        assert_non_null(strstr(pg_last_error(solver), "overlap"));
        assert_int_equal(pg_solve_once(&desc, middle, other, NULL), PG_ERROR_ARGUMENT);
        assert_int_equal(pg_smooth(solver, middle, other, 1), PG_ERROR_ARGUMENT);
        assert_int_equal(pg_cycle(solver, middle, other, 1), PG_ERROR_ARGUMENT);
        assert_int_equal(pg_apply(solver, middle, other), PG_ERROR_ARGUMENT);
        assert_int_equal(pg_residual(solver, middle, array + 2 * POINTS, other), PG_ERROR_ARGUMENT);
        if (shifts[q] != 0) assert_int_equal(pg_residual(solver, unused, middle, other), PG_ERROR_ARGUMENT);
        assert_memory_equal(array, before, sizeof array);
    }

    OK(pg_solve(solver, middle, array + 2 * POINTS, NULL), solver);   /* neighbours in memory do not overlap */
    OK(pg_solve(solver, middle, array, NULL), solver);
    OK(pg_residual(solver, middle, array, array), solver);            /* r may be f */
    pg_destroy(solver);
}

/* u and f side by side in one array, a row of u and a row of f by turns, share no element. */
static void interleaved_windows_do_not_overlap(void **state)
{
    pg_desc desc = box(backend_or_skip(state));
    double array[2 * POINTS], f[2 * POINTS], u[POINTS], packed_f[POINTS];
    fill(array, f, 2 * POINTS);
    for (int q = 0; q < POINTS; q++) packed_f[q] = array[2 * (q / NX) * NX + NX + q % NX];
    OK(pg_solve_once(&desc, u, packed_f, NULL), NULL);

    desc.stride_u[0] = desc.stride_f[0] = 2 * NX;
    pg_solver *solver = create(&desc);
    OK(pg_solve(solver, array, array + NX, NULL), solver);
    for (int q = 0; q < POINTS; q++) {
        assert_true(fabs(array[2 * (q / NX) * NX + q % NX] - u[q]) < 1e-14);
        assert_true(array[2 * (q / NX) * NX + NX + q % NX] == packed_f[q]);
    }
    assert_int_equal(pg_solve(solver, array, array + NX - 1, NULL), PG_ERROR_ARGUMENT);
    assert_int_equal(pg_solve(solver, array, array + NX + 1, NULL), PG_ERROR_ARGUMENT);
    assert_non_null(strstr(pg_last_error(solver), "overlap"));
    pg_destroy(solver);
}

/* Boundary data may lie in the gaps of a padded u, and of what pg_gradient writes, but on no element of them. */
static void boundary_data_may_lie_in_padding(void **state)
{
    enum { ROW = NX + 2, PLANE = 2 * NX * NY + 40, SIZE = NZ * PLANE };
    static double padded[SIZE], slopes[SIZE], f[POINTS], plain[POINTS], face[NX * NY], unused[POINTS];
    pg_desc desc = box(backend_or_skip(state));
    fill(unused, f, POINTS);
    for (int q = 0; q < NX * NY; q++) face[q] = 1 + q % 5;
    desc.face[PG_Z_LOW].array = face;
    OK(pg_solve_once(&desc, plain, f, NULL), NULL);

    const int gap = (NY - 1) * ROW + NX;    /* from the end of a plane's last row on */
    desc.stride_u[0] = ROW, desc.stride_u[1] = PLANE;
    const int most = PLANE - gap - NX * NY, shifts[] = {-1, 0, 1, most, most + 1};
    for (int plane = 0; plane < NZ - 1; plane++)
        for (int q = 0; q < 5; q++) {
            const int shift = shifts[q], fits = shift >= 0 && shift <= most;
            double *const data = padded + plane * PLANE + gap + shift;
            memset(padded, 0, sizeof padded);
            memcpy(data, face, sizeof face);
            desc.face[PG_Z_LOW].array = data;
            pg_solver *solver = create(&desc);
            const pg_status status = pg_solve(solver, padded, f, NULL);
            if ((status == PG_OK) != fits) fail_msg("plane %d, %d: %s", plane, shift, pg_last_error(solver));
            for (int m = 0; m < POINTS && fits; m++) {
                const double got = padded[m % NX + m / NX % NY * ROW + m / NX / NY * PLANE];
                if (!(fabs(got - plain[m]) < 1e-9)) fail_msg("u[%d] is %g, not %g", m, got, plain[m]);
            }
            if (fits) assert_memory_equal(data, face, sizeof face);
            pg_destroy(solver);
        }
    desc.stride_f[0] = ROW, desc.stride_f[1] = PLANE;
    desc.face[PG_Z_LOW].array = slopes + gap;
    memcpy(slopes + gap, face, sizeof face);
    pg_solver *solver = create(&desc);
    OK(pg_gradient(solver, padded, 1, slopes, PG_AT_UNKNOWNS), solver);
    assert_memory_equal(slopes + gap, face, sizeof face);
    assert_int_equal(pg_gradient(solver, padded, 1, slopes + 1, PG_AT_UNKNOWNS), PG_ERROR_ARGUMENT);
    pg_destroy(solver);
}

static void an_array_between_two_elements_is_refused(void **state)
{
    const pg_desc desc = box(backend_or_skip(state));
    double u[POINTS + 1], f[POINTS + 1], before[POINTS + 1];
    fill(u, f, POINTS + 1);
    memcpy(before, u, sizeof u);
    pg_solver *solver = create(&desc);
    assert_int_equal(pg_solve(solver, (char *)u + 4, f, NULL), PG_ERROR_ARGUMENT);
    assert_true(*pg_last_error(solver));
    assert_int_equal(pg_solve(solver, u, (char *)f + 1, NULL), PG_ERROR_ARGUMENT);
    assert_memory_equal(u, before, sizeof u);
    OK(pg_solve(solver, u + 1, f + 1, NULL), solver);
    pg_destroy(solver);
}

/* ---- Changes between solves -------------------------------------------------------------------------------------- */

static void bad_changes_between_solves_are_refused_and_change_nothing(void **state)
{
    pg_desc desc = box(backend_or_skip(state));
    set_ends(&desc, 1, "RN");
    set_ends(&desc, 2, "PP");
    desc.face[PG_X_LOW].value = 2, desc.alpha = 0.5, set_choice(&desc, PG_FMG);
    double u[POINTS], f[POINTS], first_u[POINTS];
    fill(u, f, POINTS);
    pg_solver *solver = create(&desc);
    OK(pg_solve(solver, first_u, f, NULL), solver);

    const double bad_alphas[] = {-0.25, NAN, INFINITY};
    for (int q = 0; q < 3; q++) {
        assert_int_equal(pg_set_alpha(solver, bad_alphas[q]), PG_ERROR_ARGUMENT);
        assert_non_null(strstr(pg_last_error(solver), "alpha"));
    }
    for (int change = 0; change < 6; change++) {
        pg_face faces[6];
        memcpy(faces, desc.face, sizeof faces);
        faces[PG_X_LOW].value = 3;                           /* a good change beside the bad one: all or nothing */
        const char *named = "face x low";
        pg_status expected = PG_ERROR_UNSUPPORTED;           /* another kind is another operator */
        switch (change) {
        case 0: faces[PG_X_LOW].kind = PG_NEUMANN; break;
        case 1: faces[PG_Y_LOW].a *= 2, named = "face y low"; break;
        case 2: faces[PG_Y_LOW].b *= 2, named = "face y low"; break;
        case 3: faces[PG_X_HIGH].value = NAN, expected = PG_ERROR_ARGUMENT, named = "face x high"; break;
        case 4: faces[PG_Y_HIGH].value = -INFINITY, expected = PG_ERROR_ARGUMENT, named = "face y high"; break;
        case 5: faces[PG_Z_HIGH].kind = PG_DIRICHLET, named = "face z high"; break;
        }
        assert_int_equal(pg_set_faces(solver, faces), expected);
        if (!strstr(pg_last_error(solver), named)) fail_msg("%s is not named in: %s", named, pg_last_error(solver));
        OK(pg_solve(solver, u, f, NULL), solver);
        assert_memory_equal(u, first_u, sizeof u);
    }
    pg_destroy(solver);
}

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

static char *aligned_to_256(char *p) { return p + (256 - (uintptr_t)p % 256) % 256; }

static void a_bad_workspace_is_refused_with_the_bytes_needed(void **state)
{
    (void)state;
    pg_desc desc = box(PG_CPU);
    double u[POINTS], f[POINTS], before[POINTS];
    size_t bytes = 0;
    char needed[32];
    fill(u, f, POINTS);
    memcpy(before, u, sizeof u);
    OK(pg_workspace_bytes(&desc, &bytes), NULL);
    assert_true(bytes > 0);
    snprintf(needed, sizeof needed, "%zu", bytes);
    char *block = allocate(bytes + 512), *aligned = aligned_to_256(block);
    pg_solver *solver = NULL;

    desc.workspace = aligned, desc.workspace_bytes = bytes - 1;
    assert_int_equal(pg_create(&desc, &solver), PG_ERROR_MEMORY);
    assert_null(solver);
    assert_non_null(strstr(pg_last_error(NULL), needed));
    desc.workspace_bytes = 0;
    assert_int_equal(pg_solve_once(&desc, u, f, NULL), PG_ERROR_MEMORY);
    assert_non_null(strstr(pg_last_error(NULL), needed));

    desc.workspace = aligned + 64, desc.workspace_bytes = bytes;
    assert_int_equal(pg_create(&desc, &solver), PG_ERROR_ARGUMENT);
    assert_non_null(strstr(pg_last_error(NULL), "workspace"));
    assert_non_null(strstr(pg_last_error(NULL), "256"));
    assert_memory_equal(u, before, sizeof u);

    desc.workspace = aligned, desc.workspace_bytes = bytes;
    OK(pg_solve_once(&desc, u, f, NULL), NULL);
    free(block);
}

static void a_failing_allocator_is_reported_and_harms_nobody(void **state)
{
    const pg_desc good = box(backend_or_skip(state));
    double u[POINTS], f[POINTS], first_u[POINTS];
    fill(u, f, POINTS);
    pg_solver *bystander = create(&good), *solver = bystander;
    OK(pg_solve(bystander, first_u, f, NULL), bystander);

    int calls = 0;
    size_t bytes = 0;
    pg_desc desc = good;
    desc.allocator.alloc = alloc_nothing, desc.allocator.free = free_nothing, desc.allocator.user = &calls;
    OK(pg_workspace_bytes(&desc, &bytes), NULL);
    char needed[32];
    snprintf(needed, sizeof needed, "%zu", bytes);
    assert_int_equal(pg_create(&desc, &solver), PG_ERROR_MEMORY);
    assert_null(solver);
    assert_int_equal(calls, 1);
    assert_non_null(strstr(pg_last_error(NULL), needed));

    OK(pg_solve(bystander, u, f, NULL), bystander);
    assert_memory_equal(u, first_u, sizeof u);
    pg_destroy(bystander);
}

typedef struct counter {
    int allocs, frees;
    size_t bytes, freed_bytes;
    pg_memory memory, freed_memory;
    void *pointer, *freed_pointer;
    size_t shift;                   /* off the required alignment */
    char *block;
} counter;

static void *counting_alloc(void *user, size_t bytes, pg_memory memory, pg_stream stream)
{
    counter *c = user;
    (void)stream;
    c->allocs++, c->bytes = bytes, c->memory = memory;
    c->block = malloc(bytes + 512 + c->shift);
    return c->pointer = aligned_to_256(c->block) + c->shift;
}
static void counting_free(void *user, void *pointer, size_t bytes, pg_memory memory, pg_stream stream)
{
    counter *c = user;
    (void)stream;
    c->frees++, c->freed_bytes = bytes, c->freed_memory = memory, c->freed_pointer = pointer;
    free(c->block);
}

static void the_allocator_is_asked_once_for_exactly_the_workspace(void **state)
{
    (void)state;
    const unsigned methods[] = {PG_JACOBI, PG_RBGS, PG_SOR, PG_VCYCLE, PG_WCYCLE, PG_FMG, PG_MIXED, PG_F32,
                                PG_CG | PG_PRECOND_DIRECT, PG_BICGSTAB | PG_PRECOND_DIRECT | PG_MIXED};
    for (size_t q = 0; q < sizeof methods / sizeof *methods; q++) {
        counter c = {0};
        size_t bytes = 0;
        pg_desc desc = box(PG_CPU);
        set_choice(&desc, methods[q]);
        desc.allocator.alloc = counting_alloc, desc.allocator.free = counting_free, desc.allocator.user = &c;
        OK(pg_workspace_bytes(&desc, &bytes), NULL);
        assert_int_equal(c.allocs, 0);
        pg_solver *solver = create(&desc);
        assert_int_equal(c.allocs, 1);
        assert_true(c.bytes == bytes);
        assert_int_equal(c.memory, PG_MEM_HOST);

        double u[POINTS] = {0}, f[POINTS] = {0}, number;
        f[POINTS / 2] = 1;                               /* also read as float where PG_F32 */
        pg_report report;
        OK(pg_solve(solver, u, f, NULL), solver);
        OK(pg_set_alpha(solver, 2), solver);
        OK(pg_set_faces(solver, desc.face), solver);
        OK(pg_solve(solver, u, f, NULL), solver);
        OK(pg_get_report(solver, &report), solver);
        OK(pg_residual(solver, u, f, f), solver);
        OK(pg_norm(solver, u, PG_NORM_MAX, &number), solver);
        assert_int_equal(c.allocs, 1);
        assert_int_equal(c.frees, 0);
        pg_destroy(solver);
        assert_int_equal(c.allocs, 1);
        assert_int_equal(c.frees, 1);
        assert_true(c.freed_bytes == bytes && c.freed_pointer == c.pointer && c.freed_memory == c.memory);
    }
}

static void an_unaligned_block_of_the_allocator_is_refused_and_given_back(void **state)
{
    (void)state;
    counter c = {0};
    c.shift = 64;
    pg_desc desc = box(PG_CPU);
    desc.allocator.alloc = counting_alloc, desc.allocator.free = counting_free, desc.allocator.user = &c;
    pg_solver *solver = NULL;
    assert_int_equal(pg_create(&desc, &solver), PG_ERROR_ARGUMENT);
    assert_null(solver);
    assert_non_null(strstr(pg_last_error(NULL), "256"));
    assert_int_equal(c.frees, 1);
    assert_ptr_equal(c.freed_pointer, c.pointer);
}

/* Grids of workspace beyond the caller's u and f. Sizes are such that the small fixed parts do not count. */
typedef struct bound {
    int n[3];
    const char *ends;
    pg_centring centring;
    double h[3];
    unsigned flags;
    double grids;
} bound;

static const bound bounds[] = {
    {{127, 127, 127}, "DD", PG_NODE, {0}, 0, 1.6},
    {{128, 128, 128}, "DD", PG_NODE, {0}, PG_VCYCLE, 1.6},
    {{129, 129, 129}, "NN", PG_NODE, {0}, PG_WCYCLE, 1.6},
    {{128, 128, 128}, "PP", PG_CELL, {0}, PG_FMG, 1.6},
    {{127, 129, 131}, "PP", PG_NODE, {0}, PG_FMG, 1.6},
    {{128, 127, 130}, "DN", PG_CELL, {0}, PG_VCYCLE, 1.6},
    {{127, 127, 127}, "RR", PG_NODE, {0}, PG_F32, 1.6},
    {{128, 128, 128}, "DD", PG_CELL, {0}, PG_SYMMETRIC | PG_VCYCLE, 1.6},
    {{2048, 2048, 2048}, "DD", PG_CELL, {0}, PG_F32, 1.6},
    {{2047, 2047, 2047}, "DD", PG_NODE, {0}, PG_F32 | PG_VCYCLE, 1.6},
    {{511, 511, 1}, "DD", PG_NODE, {0}, 0, 2.1},
    {{512, 512, 1}, "PP", PG_CELL, {0}, PG_VCYCLE, 2.1},
    {{513, 513, 1}, "NN", PG_NODE, {0}, PG_F32, 2.1},
    {{100001, 1, 1}, "DD", PG_NODE, {0}, 0, 4.1},
    {{100001, 1, 1}, "PP", PG_CELL, {0}, PG_VCYCLE, 4.1},
    {{128, 128, 128}, "DD", PG_NODE, {1e-3, 1, 1}, 0, 4.1},
    {{128, 128, 128}, "NN", PG_CELL, {1, 1, 1e-3}, PG_VCYCLE, 4.1},
    {{512, 512, 1}, "DD", PG_CELL, {1, 1e-3, 1}, PG_VCYCLE, 4.1},
    {{127, 127, 127}, "DD", PG_NODE, {0}, PG_MIXED, 1.8},
    {{128, 128, 128}, "PP", PG_CELL, {0}, PG_MIXED | PG_VCYCLE, 1.8},
    {{128, 128, 128}, "DD", PG_CELL, {0}, PG_JACOBI, 1.02},
    {{128, 128, 128}, "DD", PG_CELL, {0}, PG_RBGS, 1.02},
    {{512, 512, 512}, "NN", PG_NODE, {0}, PG_F32 | PG_SOR, 1.02},
};

static void the_workspace_keeps_its_bounds(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    failures = 0;
    row = "workspace";
    for (size_t q = 0; q < sizeof bounds / sizeof *bounds; q++) {
        const bound *b = &bounds[q];
        pg_desc desc = {0};
        double grid = b->flags & PG_F32 ? 4 : 8;
        for (int axis = 0; axis < 3; axis++) {
            desc.n[axis] = b->n[axis], desc.centring[axis] = b->centring, desc.h[axis] = b->h[axis];
            set_ends(&desc, axis, b->ends);
            grid *= b->n[axis];
        }
        set_choice(&desc, b->flags), desc.backend = backend;
        desc.memory = backend == PG_CUDA ? PG_MEM_DEVICE : PG_MEM_HOST;
        size_t bytes = 0;
        const pg_status status = pg_workspace_bytes(&desc, &bytes);
        EXPECT(status == PG_OK, "%s: %s", describe(&desc), pg_last_error(NULL));
        EXPECT((double)bytes <= b->grids * grid, "%s: %.3f grids, not %.3f", describe(&desc), (double)bytes / grid,
               b->grids);
        if (backend == PG_CUDA && status == PG_OK) {
            size_t staged = 0;
            desc.memory = PG_MEM_HOST;
            OK(pg_workspace_bytes(&desc, &staged), NULL);
            double faces = 0;
            for (int axis = 0; axis < 3; axis++) faces += 2 * grid / desc.n[axis];
            EXPECT(staged >= bytes + (size_t)(2 * grid) && (double)staged <= (double)bytes + 2.01 * grid + faces,
                   "%s: host arrays add %.3f grids", describe(&desc), (double)(staged - bytes) / grid);
        }
    }
    assert_int_equal(failures, 0);
}

/* ---- Defaults ---------------------------------------------------------------------------------------------------- */

enum {
    PRECISIONS = PG_F64 | PG_F32 | PG_MIXED,
    METHODS = PG_JACOBI | PG_RBGS | PG_SOR | PG_VCYCLE | PG_WCYCLE | PG_FMG,
    SMOOTHERS = PG_SMOOTH_RBGS | PG_SMOOTH_JACOBI | PG_SMOOTH_CHEBYSHEV
};

static pg_desc resolved(const pg_desc *desc)
{
    pg_desc q;
    memset(&q, 0xff, sizeof q);
    pg_solver *solver = create(desc);
    OK(pg_query_desc(solver, &q), solver);
    pg_destroy(solver);
    return q;
}

static unsigned choices_resolved(const pg_desc *desc)
{
    const pg_desc q = resolved(desc);
    return choice_of(&q);
}

static void query_tells_every_default(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    pg_desc desc = {0};
    desc.n[0] = 7, desc.n[1] = 9, desc.backend = backend;
    set_ends(&desc, 1, "NN");
    pg_desc q = resolved(&desc);
    assert_true(q.flags == (PG_F64 | PG_DIRECT) || choice_of(&q) == (PG_F64 | PG_FMG | PG_SMOOTH_RBGS));   /* PG_FASTEST */
    set_choice(&desc, PG_SMOOTH_RBGS);
    assert_int_equal(choices_resolved(&desc), PG_F64 | PG_FMG | PG_SMOOTH_RBGS);
    set_choice(&desc, 0), desc.omega = 1.1;
    assert_int_equal(choices_resolved(&desc), PG_F64 | PG_FMG | PG_SMOOTH_RBGS);
    set_choice(&desc, PG_FMG), desc.omega = 0;
    q = resolved(&desc);
    size_t bytes = 0;
    OK(pg_workspace_bytes(&desc, &bytes), NULL);

    assert_true(q.struct_size == sizeof(pg_desc));
    assert_int_equal(q.n[0], 7);
    assert_int_equal(q.n[1], 9);
    assert_int_equal(q.n[2], 1);
    assert_int_equal(q.dim, 2);
    assert_int_equal(q.centring[0], PG_NODE);
    assert_true(q.h[0] == 1.0 / 8 && q.h[1] == 1.0 / 8);
    for (int axis = 0; axis < 3; axis++) {
        assert_null(q.coord[axis]);
        assert_null(q.weight[axis]);
        assert_null(q.conductance[axis]);
    }
    assert_int_equal(q.face[PG_X_HIGH].kind, PG_DIRICHLET);
    assert_int_equal(q.face[PG_Y_LOW].kind, PG_NEUMANN);
    assert_true(q.alpha == 0 && q.beta == 1);
    assert_true(q.stride_u[0] == 7 && q.stride_u[1] == 63 && q.stride_f[0] == 7 && q.stride_f[1] == 63);
    assert_int_equal(q.memory, PG_MEM_HOST);
    assert_int_equal(choice_of(&q), PG_F64 | PG_FMG | PG_SMOOTH_RBGS);
    assert_true(q.omega == 0);                               /* each level chooses its own */
    assert_int_equal(q.nu_pre, 2);
    assert_int_equal(q.nu_post, 1);
    assert_int_equal(q.fmg_cycles, 1);
    assert_int_equal(q.coarsest, 132);
    assert_int_equal(q.backend, backend);
    if (backend == PG_CUDA) assert_true(q.device >= PG_DEVICE(0));
    assert_null(q.workspace);                   /* the library owns it */
    assert_true(q.workspace_bytes == bytes);

    desc.centring[0] = desc.centring[1] = PG_CELL;
    q = resolved(&desc);
    assert_true(q.h[0] == 1.0 / 7 && q.h[1] == 1.0 / 9);
    desc.centring[1] = PG_NODE;
    set_ends(&desc, 1, "DN");
    assert_true(resolved(&desc).h[1] == 1.0 / 9);
    set_ends(&desc, 1, "PP");
    assert_true(resolved(&desc).h[1] == 1.0 / 9);
    desc.h[1] = 0.3;
    assert_true(resolved(&desc).h[1] == 0.3);

    desc.n[1] = desc.n[2] = 0;
    q = resolved(&desc);
    assert_true(q.dim == 1 && q.n[1] == 1 && q.n[2] == 1);
    desc.dim = 3;
    assert_int_equal(resolved(&desc).dim, 3);
    desc.stride_u[0] = 20;
    q = resolved(&desc);
    assert_true(q.stride_u[0] == 20 && q.stride_u[1] == 20 && q.stride_f[1] == 7);

    set_choice(&desc, PG_SYMMETRIC | PG_VCYCLE);
    q = resolved(&desc);
    assert_true(q.nu_pre == 2 && q.nu_post == 2);
    assert_int_equal(choice_of(&q), PG_F64 | PG_VCYCLE | PG_SMOOTH_RBGS | PG_SYMMETRIC);
    set_choice(&desc, PG_MIXED | PG_FMG);
    assert_int_equal(resolved(&desc).inner_cycles, 2);
    desc.nu_pre = PG_NONE;
    assert_int_equal(resolved(&desc).nu_pre, PG_NONE);
    desc.omega = 0.75;
    assert_true(resolved(&desc).omega == 0.75);
    desc.n[0] = desc.n[1] = desc.n[2] = 40, desc.stride_u[0] = 0;   /* too many for the level to be the only one */
    assert_int_equal(resolved(&desc).coarsest, backend == PG_CPU ? 24 : 132);
}

static void query_tells_one_flag_of_each_group(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    for (unsigned precision = 0; precision <= PG_MIXED; precision = precision ? 2 * precision : PG_F64)
        for (unsigned method = 0; method <= PG_FMG; method = method ? 2 * method : PG_JACOBI) {
            const int sweeps = (method & (PG_JACOBI | PG_RBGS | PG_SOR)) != 0;
            if (precision == PG_MIXED && sweeps) continue;
            pg_desc desc = box(backend);
            set_choice(&desc, precision | method);
            const pg_desc q = resolved(&desc);
            assert_int_equal(q.flags & PRECISIONS, precision ? precision : PG_F64);
            if (method) assert_int_equal(q.flags & METHODS, method);
            else assert_true((q.flags & METHODS) == PG_FMG || (q.flags & PG_DIRECT));
            assert_int_equal(choice_of(&q) & SMOOTHERS, sweeps || q.flags & PG_DIRECT ? 0 : PG_SMOOTH_RBGS);
            if (method == PG_RBGS) assert_true(q.omega == 1);
            else if (method == PG_SOR) assert_true(q.omega > 1 && q.omega < 2);
            else if (method == PG_JACOBI) assert_true(q.omega > 0 && q.omega <= 1);
            else assert_true(q.omega == 0);
        }
}

/* D. Young 1954: omega = 2 / (1 + sqrt(1 - rho^2)), Jacobi's spectral radius rho being cos(pi h) on the unit cube. */
static void sor_picks_youngs_omega(void **state)
{
    pg_desc desc = {0};
    desc.backend = backend_or_skip(state);
    desc.n[0] = desc.n[1] = desc.n[2] = 31;
    set_choice(&desc, PG_SOR);
    const double expected = 2 / (1 + sin(PI / 32));
    assert_true(fabs(resolved(&desc).omega - expected) < 0.01 * (2 - expected));
}

/* An alpha that is lost beside the diagonal leaves the problem as good as singular. The factor 2, which Young's formula
   rounds to there, does not converge, and no descriptor may have it. */
static void sor_picks_a_factor_that_works_for_the_smallest_alpha(void **state)
{
    enum { N = 24 };
    const pg_backend backend = backend_or_skip(state);
    const double alphas[] = {1e-8, 1e-14, 1e-30};
    for (int q = 0; q < 6; q++) {
        const int single = q % 2;
        float u32[N * N] = {0}, f32[N * N];
        double u64[N * N] = {0}, f64[N * N];
        pg_desc desc = {0};
        desc.backend = backend;
        desc.n[0] = desc.n[1] = N;
        set_choice(&desc, single ? PG_F32 | PG_SOR : PG_SOR);
        desc.alpha = alphas[q / 2];
        for (int a = 0; a < 2; a++) desc.centring[a] = PG_CELL, set_ends(&desc, a, "NN");
        for (int i = 0; i < N * N; i++) f32[i] = (float)(f64[i] = i % 4 - 1.5);
        const pg_desc query = resolved(&desc);
        assert_true(query.omega > 1.5 && query.omega < 1.9);
        pg_solver *solver = create(&query);
        pg_report report;
        OK(pg_solve(solver, single ? (void *)u32 : u64, single ? (void *)f32 : f64, NULL), solver);
        OK(pg_get_report(solver, &report), solver);
        assert_int_equal(report.outcome, PG_CONVERGED);
        pg_destroy(solver);
    }
}

/* What query tells, given to create again, is the same solver. */
static void a_queried_descriptor_solves_to_the_same_bits(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    const unsigned flags[] = {0, PG_VCYCLE | PG_SMOOTH_JACOBI, PG_WCYCLE | PG_SMOOTH_CHEBYSHEV, PG_SOR, PG_RBGS,
                              PG_JACOBI, PG_MIXED, PG_SYMMETRIC | PG_VCYCLE};
    for (size_t q = 0; q < sizeof flags / sizeof *flags; q++) {
        double u[POINTS], v[POINTS], f[POINTS];
        pg_desc desc = box(backend);
        set_choice(&desc, flags[q]), desc.alpha = 1.5;
        set_ends(&desc, 0, "RN");
        set_ends(&desc, 2, "PP");
        desc.centring[1] = PG_CELL, desc.face[PG_Y_LOW].value = 3;
        fill(u, f, POINTS);
        memcpy(v, u, sizeof v);
        pg_desc again = resolved(&desc);
        again.workspace = NULL, again.workspace_bytes = 0;
        OK(pg_solve_once(&desc, u, f, NULL), NULL);
        OK(pg_solve_once(&again, v, f, NULL), NULL);
        assert_memory_equal(u, v, sizeof u);
    }
}

/* ---- Back ends --------------------------------------------------------------------------------------------------- */

static void without_a_device_cuda_is_refused_and_auto_is_the_cpu(void **state)
{
    (void)state;
    if (cuda_is_usable()) skip();
    double u[POINTS], f[POINTS], before[POINTS];
    fill(u, f, POINTS);
    memcpy(before, u, sizeof u);
    pg_desc desc = box(PG_CUDA);
    pg_solver *solver = NULL;
    size_t bytes = 0;
    assert_int_equal(pg_create(&desc, &solver), PG_ERROR_NO_DEVICE);
    assert_null(solver);
    assert_true(*pg_last_error(NULL));
    assert_int_equal(pg_workspace_bytes(&desc, &bytes), PG_ERROR_NO_DEVICE);
    assert_int_equal(pg_solve_once(&desc, u, f, NULL), PG_ERROR_NO_DEVICE);
    assert_memory_equal(u, before, sizeof u);

    desc.backend = PG_AUTO;
    assert_int_equal(resolved(&desc).backend, PG_CPU);
    pg_report report;
    OK(pg_solve_once(&desc, u, f, &report), NULL);
    assert_int_equal(report.backend, PG_CPU);
}

static void a_device_that_is_not_there_is_named(void **state)
{
    pg_desc desc = box(backend_or_skip(state));
    desc.device = PG_DEVICE(1234);
    pg_solver *solver = NULL;
    assert_int_not_equal(pg_create(&desc, &solver), PG_OK);
    assert_null(solver);
    assert_non_null(strstr(pg_last_error(NULL), "1234"));
}

static void the_cpu_refuses_device_arrays(void **state)
{
    (void)state;
    pg_desc desc = box(PG_CPU);
    desc.memory = PG_MEM_DEVICE;
    pg_solver *solver = NULL;
    assert_int_equal(pg_create(&desc, &solver), PG_ERROR_UNSUPPORTED);
    assert_null(solver);
    assert_non_null(strstr(pg_last_error(NULL), "PG_MEM_DEVICE"));
}

/* What is done without the GPU though it was compiled for one is no error, but somebody has to say so. */
static void auto_tells_why_it_takes_the_cpu(void **state)
{
    pg_desc desc = box(*(pg_backend *)*state == PG_CPU ? PG_CPU : PG_AUTO);
    double u[POINTS], f[POINTS];
    pg_report report;
    fill(u, f, POINTS);
    setenv("SIMT_DEVICES", "0", 1);                          /* for a real GPU there is no such thing */
    const pg_status status = pg_solve_once(&desc, u, f, &report);
    unsetenv("SIMT_DEVICES");
    assert_int_equal(status, PG_OK);
    if (report.backend == PG_CUDA) skip();
    const int expected = desc.backend == PG_AUTO && strstr(pg_version(), ", CUDA");
    if (expected && !strstr(report.warning, "no CUDA device can be used")) fail_msg("warning: %s", report.warning);
    if (!expected) assert_string_equal(report.warning, "");
}

/* No size is told that was worked out without knowing the device. */
static void a_device_that_cannot_be_asked_is_an_error(void **state)
{
    const pg_desc desc = box(backend_or_skip(state));
    size_t bytes = 1;
    pg_solver *solver = NULL;
    setenv("SIMT_NO_PROCESSORS", "1", 1);                    /* for a real GPU there is no such thing */
    const pg_status status = pg_workspace_bytes(&desc, &bytes);
    const pg_status created = pg_create(&desc, &solver);
    unsetenv("SIMT_NO_PROCESSORS");
    pg_destroy(solver);
    if (status == PG_OK && created == PG_OK) skip();
    assert_int_equal(status, PG_ERROR_CUDA);
    assert_int_equal(created, PG_ERROR_CUDA);
    assert_int_equal(bytes, 0);
    assert_true(*pg_last_error(NULL));
}

static void last_error_is_empty_after_success(void **state)
{
    pg_desc desc = box(*(pg_backend *)*state == PG_CPU ? PG_CPU : PG_AUTO), query;
    double u[POINTS], f[POINTS];
    size_t bytes;
    pg_solver *solver = NULL;
    fill(u, f, POINTS);
    for (int call = 0; call < 4; call++) {
        assert_int_equal(pg_create(&desc, NULL), PG_ERROR_ARGUMENT);
        assert_true(*pg_last_error(NULL));
        if (call == 0) OK(pg_workspace_bytes(&desc, &bytes), NULL);
        if (call == 1) OK(pg_create(&desc, &solver), NULL);
        if (call == 2) OK(pg_query_desc(solver, &query), NULL);
        if (call == 3) OK(pg_solve_once(&desc, u, f, NULL), NULL);
        assert_string_equal(pg_last_error(NULL), "");
    }
    pg_destroy(solver);
}

/* To ask for the size of a long uniform axis, or to create a solver that needs no workspace, takes next to no time. */
static void long_uniform_axes_are_described_at_once(void **state)
{
    const unsigned flags[] = {PG_JACOBI, PG_RBGS, PG_SOR, PG_VCYCLE, PG_FMG, PG_MIXED, PG_DIRECT};
    const char *const ends[] = {"DD", "NR", "PP"};
    pg_desc desc = {0};
    desc.backend = backend_or_skip(state);
    for (int q = 0; q < 7 * 3; q++) {
        size_t bytes;
        if (desc.backend == PG_CUDA && flags[q / 3] == PG_DIRECT) continue;    /* its tables take their time */
        const clock_t begin = clock();
        desc.n[0] = 1 << 28, desc.h[0] = 1, set_choice(&desc, flags[q / 3]);
        set_ends(&desc, 0, ends[q % 3]);
        OK(pg_workspace_bytes(&desc, &bytes), NULL);
        if (desc.backend == PG_CPU && (desc.flags & (PG_RBGS | PG_SOR))) pg_destroy(create(&desc));
        const double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
        if (seconds > 0.2) fail_msg("%g s: %s", seconds, describe(&desc));
    }
}

/* ---- Texts ------------------------------------------------------------------------------------------------------- */

static void every_code_has_its_text(void **state)
{
    (void)state;
#define TEXT(name, text) assert_string_equal(pg_status_string(name), text);
    PG_STATUS_LIST(TEXT)
#undef TEXT
#define TEXT(name, text) assert_string_equal(pg_outcome_string(name), text);
    PG_OUTCOME_LIST(TEXT)
#undef TEXT
    assert_int_equal(PG_OK, 0);
    assert_int_equal(PG_NOT_RUN, 0);
    assert_true(*pg_status_string(PG_STATUS_COUNT));         /* no code, and still a text */
    assert_true(*pg_outcome_string(PG_OUTCOME_COUNT));
    for (int s = 0; s < PG_STATUS_COUNT; s++)
        assert_string_not_equal(pg_status_string((pg_status)s), pg_status_string(PG_STATUS_COUNT));
    const int wild[] = {-1, 1000, INT_MAX, INT_MIN};
    for (int q = 0; q < 4; q++) {
        assert_string_equal(pg_status_string((pg_status)wild[q]), pg_status_string(PG_STATUS_COUNT));
        assert_string_equal(pg_outcome_string((pg_outcome)wild[q]), pg_outcome_string(PG_OUTCOME_COUNT));
    }
}

static void the_version_is_that_of_the_header(void **state)
{
    (void)state;
    char expected[64];
    snprintf(expected, sizeof expected, "poisson_gpu %d.%d.%d", PG_VERSION_MAJOR, PG_VERSION_MINOR, PG_VERSION_PATCH);
    assert_memory_equal(pg_version(), expected, strlen(expected));
}

/* What pg_abi says of a struct, or of a field of it. */
static const pg_abi_entry *entry_of(const char *name)
{
    const pg_abi_entry *entry = pg_abi();
    while (entry->name && strcmp(entry->name, name)) entry++;
    if (!entry->name) fail_msg("%s is missing", name);
    return entry;
}

static void pg_abi_tells_every_field(void **state)
{
    (void)state;
    assert_string_equal(pg_abi()->name, "version");
    assert_int_equal(pg_abi()->size, 10000 * PG_VERSION_MAJOR + 100 * PG_VERSION_MINOR + PG_VERSION_PATCH);
    const struct { const char *name; size_t offset, size; } expected[] = {
        {"pg_face", 0, sizeof(pg_face)}, {"pg_cell_value", 0, sizeof(pg_cell_value)},
        {"pg_allocator", 0, sizeof(pg_allocator)}, {"pg_desc", 0, sizeof(pg_desc)},
        {"pg_dense_desc", 0, sizeof(pg_dense_desc)}, {"pg_report", 0, sizeof(pg_report)},
        {"pg_stop", 0, sizeof(pg_stop)},
        {"pg_desc.face", offsetof(pg_desc, face), 6 * sizeof(pg_face)},
        {"pg_desc.allocator", offsetof(pg_desc, allocator), sizeof(pg_allocator)},
        {"pg_report.history", offsetof(pg_report, history), PG_HISTORY * sizeof(double)},
        {"pg_report.warning", offsetof(pg_report, warning), 160},
        {"pg_stop.user", offsetof(pg_stop, user), sizeof(void *)},
        {"pg_dense_desc.lda", offsetof(pg_dense_desc, lda), 8},
    };
    for (size_t q = 0; q < sizeof expected / sizeof *expected; q++) {
        const pg_abi_entry *entry = entry_of(expected[q].name);
        assert_int_equal(entry->offset, expected[q].offset);
        assert_int_equal(entry->size, expected[q].size);
    }
    /* One field follows the other, with no more between them than an alignment takes: none is missing. */
    const pg_abi_entry *whole = NULL;
    size_t end = 0;
    for (const pg_abi_entry *e = pg_abi() + 1;; e++) {
        const int is_field = e->name && strchr(e->name, '.') != NULL;
        if (!is_field && whole) assert_true(end <= whole->size && whole->size < end + 8);
        if (!e->name) break;
        if (is_field) {
            assert_memory_equal(e->name, whole->name, strlen(whole->name));
            assert_true(e->offset >= end && e->offset < end + 8);
        } else {
            whole = e;
        }
        end = is_field ? e->offset + e->size : 0;
    }
}

/* A message belongs to its handle (or to the thread, for calls without one). */
static void messages_of_two_handles_do_not_mix(void **state)
{
    pg_desc desc = box(backend_or_skip(state));
    set_choice(&desc, PG_FMG);
    double u[POINTS], f[POINTS];
    fill(u, f, POINTS);
    pg_solver *a = create(&desc), *b = create(&desc);
    assert_int_equal(pg_set_alpha(a, -1.25), PG_ERROR_ARGUMENT);
    assert_int_equal(pg_set_alpha(b, -7.75), PG_ERROR_ARGUMENT);
    pg_desc bad = desc;
    bad.beta = -3.5;
    pg_solver *none;
    assert_int_equal(pg_create(&bad, &none), PG_ERROR_ARGUMENT);
    assert_non_null(strstr(pg_last_error(a), "-1.25"));
    assert_non_null(strstr(pg_last_error(b), "-7.75"));
    assert_non_null(strstr(pg_last_error(NULL), "-3.5"));
    pg_destroy(a);
    assert_non_null(strstr(pg_last_error(b), "-7.75"));
    pg_destroy(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_BOTH(every_bad_descriptor_is_refused_by_name),
        ON_BOTH(every_allowed_descriptor_is_taken),
        ON_BOTH(remedies_are_accepted),
        ON_BOTH(several_wrong_options_have_a_remedy),
        ON_BOTH(options_that_do_not_apply_are_refused),
        ON_BOTH(every_bad_stop_is_refused_by_name),
        ON_BOTH(no_number_is_undefined_behaviour),
        ON_BOTH(null_arguments_are_refused),
        ON_BOTH(overlapping_arrays_are_refused),
        ON_BOTH(interleaved_windows_do_not_overlap),
        ON_BOTH(boundary_data_may_lie_in_padding),
        ON_BOTH(an_array_between_two_elements_is_refused),
        ON_BOTH(bad_changes_between_solves_are_refused_and_change_nothing),
        cmocka_unit_test(a_bad_workspace_is_refused_with_the_bytes_needed),
        ON_BOTH(a_failing_allocator_is_reported_and_harms_nobody),
        cmocka_unit_test(the_allocator_is_asked_once_for_exactly_the_workspace),
        cmocka_unit_test(an_unaligned_block_of_the_allocator_is_refused_and_given_back),
        ON_BOTH(the_workspace_keeps_its_bounds),
        ON_BOTH(query_tells_every_default),
        ON_BOTH(query_tells_one_flag_of_each_group),
        ON_BOTH(sor_picks_youngs_omega),
        ON_BOTH(long_uniform_axes_are_described_at_once),
        ON_BOTH(auto_tells_why_it_takes_the_cpu),
        ON_BOTH(last_error_is_empty_after_success),
        ON_CUDA(a_device_that_cannot_be_asked_is_an_error),
        ON_BOTH(sor_picks_a_factor_that_works_for_the_smallest_alpha),
        ON_BOTH(a_queried_descriptor_solves_to_the_same_bits),
        cmocka_unit_test(without_a_device_cuda_is_refused_and_auto_is_the_cpu),
        ON_CUDA(a_device_that_is_not_there_is_named),
        cmocka_unit_test(the_cpu_refuses_device_arrays),
        cmocka_unit_test(every_code_has_its_text),
        cmocka_unit_test(the_version_is_that_of_the_header),
        cmocka_unit_test(pg_abi_tells_every_field),
        ON_BOTH(messages_of_two_handles_do_not_mix),
    };
    return cmocka_run_group_tests_name("api", tests, NULL, NULL);
}
