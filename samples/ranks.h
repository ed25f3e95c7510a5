/* Ranks that are processes of MPI and solve together. Compiled with -DPG_USE_MPI and begun by mpirun, a program is one
   of several; else it is alone, and nothing is sent.

       ranks_begin(&argc, &argv);
       const struct ranks all = ranks_join(&desc);              who they are and what each has; desc.n must be there
       ranks_ghosts(&all, plane, bytes, 1, desc.memory);        planes beside one's own
       return ranks_end(status);

   Rank r of a host has GPU r there. What ranks send each other goes through host memory, so that any MPI will do. */
#ifndef RANKS_H
#define RANKS_H

#include "sample.h"
#ifdef PG_USE_MPI
#define OMPI_SKIP_MPICXX                    /* the C interface, in C++ too */
#define MPICH_SKIP_MPICXX
#include <mpi.h>
#endif

/* Rank r has planes first[r] <= k < first[r + 1] across the last axis; first[count] is how many there are. */
enum { MOST_RANKS = 256 };
struct ranks { int number, count, first[MOST_RANKS + 1]; };

/* Only the first rank writes to stdout. */
static inline void ranks_begin(int *argc, char ***argv)
{
#ifdef PG_USE_MPI
    int rank;
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    sample_require(rank == 0 || freopen("/dev/null", "w", stdout) != NULL, "freopen");
#else
    (void)argc, (void)argv;
#endif
}

static inline int ranks_end(int status)
{
#ifdef PG_USE_MPI
    MPI_Finalize();
#endif
    return status;
}

static inline struct ranks ranks_join(pg_desc *desc)
{
    struct ranks all = {0, 1, {0}};
    int lo[3], hi[3], last = 2;
#ifdef PG_USE_MPI
    static MPI_Comm world;
    MPI_Comm host;
    int device;
    world = MPI_COMM_WORLD;
    desc->comm.kind = PG_COMM_MPI;
    desc->comm.handle = &world;
    MPI_Comm_rank(world, &all.number);
    MPI_Comm_size(world, &all.count);
    sample_require(all.count <= MOST_RANKS, "having that many ranks");
    MPI_Comm_split_type(world, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    MPI_Comm_rank(host, &device);
    MPI_Comm_free(&host);
    if (all.count > 1) desc->device = PG_DEVICE(device);
#ifdef PG_SAMPLE_CUDA
    cudaSetDevice(device);                  /* where there is none, the library says so */
#endif
#endif
    sample_check(pg_query_part(desc, lo, hi), NULL);
    while (last > 0 && desc->n[last] <= 1) last--;
    all.first[all.count] = desc->n[last];
#ifdef PG_USE_MPI
    MPI_Allgather(&lo[last], 1, MPI_INT, all.first, 1, MPI_INT, world);
#endif
    return all;
}

/* The largest of all ranks' numbers, which are not negative, or NaN if one is: their bits have the same order. */
static inline double ranks_largest(double own)
{
#ifdef PG_USE_MPI
    uint64_t bits;
    memcpy(&bits, &own, sizeof bits);
    MPI_Allreduce(MPI_IN_PLACE, &bits, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
    memcpy(&own, &bits, sizeof bits);
#endif
    return own;
}

#ifdef PG_USE_MPI
/* How many planes of rank `from` are among the depth planes on either side of those of rank `to`, and the first one. */
static inline int ranks_common(const struct ranks *all, int from, int to, int depth, int *first)
{
    const int low = all->first[to] - depth, high = all->first[to + 1] + depth;
    const int end = all->first[from + 1] < high ? all->first[from + 1] : high;
    *first = all->first[from] > low ? all->first[from] : low;
    return end > *first ? end - *first : 0;
}
#endif

/* Fills the depth planes on either side of this rank's own, as far as there are so many, with those of the ranks that
   have them. own: this rank's first plane; all have so many bytes and follow each other in memory. */
static inline void ranks_ghosts(const struct ranks *all, void *own, size_t bytes, int depth, pg_memory memory)
{
#ifdef PG_USE_MPI
    const int me = all->number;
    MPI_Datatype plane;
    MPI_Type_contiguous((int)bytes, MPI_BYTE, &plane);
    MPI_Type_commit(&plane);
    for (int step = 1; step < all->count; step++) {
        const int to = (me + step) % all->count, from = (me + all->count - step) % all->count;
        int first_out, first_in;
        const int out = ranks_common(all, me, to, depth, &first_out);
        const int in = ranks_common(all, from, me, depth, &first_in);
        if (!out && !in) continue;
        char *const sent = (char *)sample_alloc((size_t)(out + in) * bytes, PG_MEM_HOST);
        char *const received = sent + out * bytes;
        sample_copy(sent, (char *)own + (ptrdiff_t)bytes * (first_out - all->first[me]), out * bytes, memory);
        MPI_Sendrecv(sent, out, plane, out ? to : MPI_PROC_NULL, 0, received, in, plane, in ? from : MPI_PROC_NULL, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        sample_copy((char *)own + (ptrdiff_t)bytes * (first_in - all->first[me]), received, in * bytes, memory);
        free(sent);
    }
    MPI_Type_free(&plane);
#else
    (void)all, (void)own, (void)bytes, (void)depth, (void)memory;
#endif
}

#endif
