/* Ranks that are threads of one program: a pg_transport by way of memory that all threads see.

       static struct thread_ranks all = THREAD_RANKS(3);
       struct thread_rank me = {&all, r};                       one a thread
       const pg_transport transport = thread_transport(&me);

   The library calls the functions below; a program may call thread_gather too, of a struct thread_ranks of its own. */
#ifndef THREAD_RANKS_H
#define THREAD_RANKS_H

#include <pthread.h>
#include <string.h>
#include <time.h>
#include "poisson_gpu.h"

enum { MOST_THREAD_RANKS = 16, THREAD_RANKS_PATIENCE = 60 };    /* seconds that a rank waits for others */

/* What threads have in common. Each pair of ranks has two places each way: no more can be on their way at once. */
struct thread_ranks {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int ranks, arrived, turn, given_up;
    const void *own[MOST_THREAD_RANKS];
    const pg_rank_message *box[MOST_THREAD_RANKS][MOST_THREAD_RANKS][2];
    long posted[MOST_THREAD_RANKS][MOST_THREAD_RANKS], taken[MOST_THREAD_RANKS][MOST_THREAD_RANKS];
};
#define THREAD_RANKS(count) {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .ranks = (count)}

struct thread_rank {
    struct thread_ranks *all;
    int number;
};

/* Waits for a change. Nonzero: a rank has given up, as this one does when there was none for too long. */
static inline int thread_ranks_wait(struct thread_ranks *all)
{
    const struct timespec end = {time(NULL) + THREAD_RANKS_PATIENCE, 0};
    if (!all->given_up && pthread_cond_timedwait(&all->changed, &all->mutex, &end)) {
        all->given_up = 1;
        pthread_cond_broadcast(&all->changed);
    }
    return all->given_up;
}

/* Waits until all ranks have come. Nonzero: one of them never will. */
static inline int thread_ranks_meet(struct thread_ranks *all)
{
    const int turn = all->turn;
    if (++all->arrived == all->ranks) {
        all->arrived = 0, all->turn++;
        pthread_cond_broadcast(&all->changed);
    }
    while (all->turn == turn && !thread_ranks_wait(all)) continue;
    return all->given_up;
}

static inline int thread_gather(void *user, const void *own, size_t bytes, void *gathered)
{
    const struct thread_rank *const me = (const struct thread_rank *)user;
    struct thread_ranks *const all = me->all;
    pthread_mutex_lock(&all->mutex);
    all->own[me->number] = own;
    int failed = thread_ranks_meet(all);
    for (int r = 0; r < all->ranks && !failed; r++) memcpy((char *)gathered + (size_t)r * bytes, all->own[r], bytes);
    failed = failed || thread_ranks_meet(all);    /* all have read, so `own` may change */
    pthread_mutex_unlock(&all->mutex);
    return failed;
}

static inline int thread_exchange(void *user, const pg_rank_message *message, int count, pg_stream stream)
{
    const int me = ((const struct thread_rank *)user)->number;
    struct thread_ranks *const all = ((const struct thread_rank *)user)->all;
    (void)stream;
    pthread_mutex_lock(&all->mutex);
    for (int q = 0; q < count; q++) {
        const int to = message[q].peer;
        all->box[me][to][all->posted[me][to]++ % 2] = &message[q];
    }
    pthread_cond_broadcast(&all->changed);
    for (int q = 0; q < count; q++) {
        const int from = message[q].peer;
        while (all->posted[from][me] == all->taken[from][me] && !thread_ranks_wait(all)) continue;
        if (all->given_up) break;
        memcpy(message[q].receive, all->box[from][me][all->taken[from][me]++ % 2]->send, message[q].receive_bytes);
    }
    pthread_cond_broadcast(&all->changed);
    for (int q = 0; q < count; q++)    /* what was sent may change only once it has been taken */
        while (all->taken[me][message[q].peer] < all->posted[me][message[q].peer] && !thread_ranks_wait(all)) continue;
    const int failed = all->given_up;
    pthread_mutex_unlock(&all->mutex);
    return failed;
}

static inline void thread_give_up(void *user)
{
    struct thread_ranks *const all = ((const struct thread_rank *)user)->all;
    pthread_mutex_lock(&all->mutex);
    all->given_up = 1;
    pthread_cond_broadcast(&all->changed);
    pthread_mutex_unlock(&all->mutex);
}

static inline pg_transport thread_transport(struct thread_rank *me)
{
    const pg_transport transport = {.rank = me->number, .ranks = me->all->ranks, .user = me, .gather = thread_gather,
                                    .exchange = thread_exchange, .abort = thread_give_up};
    return transport;
}

#endif
