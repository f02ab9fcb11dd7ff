// Threads of OpenMP, one at a time: whose turn it is depends on the program alone, never on the clock.
// Answers what a kernel compiled with -fopenmp -fsanitize=thread calls; what is missing here does not
// link, and then nothing is looked at.
#include "shadow.hpp"
#include <malloc.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

namespace kf {
struct Share {  // a loop, sections or a single that a team divides
  bool ready, up;
  long chunks, chunk, total, start, end, step;
  unsigned long ustart, uend, ustep;
  long ordered;  // the chunk whose turn it is
  Clock order;
  void* copy;
};
struct Group { long unfinished; Clock ended; Group* outer; };
struct Task {
  void (*body)(void*);
  void* data;
  int target;
  bool queued;
  Task *parent, *next;
  long unfinished;  // children
  Clock created, ended;
  Group* group;
};
struct Team {
  int size, level, active;
  Team* outer;
  int outer_number, members[MOST];
  int arrived;
  unsigned generation;
  long outstanding, dealt;
  Clock meeting[2];
  Share** shares;
  int share_room;
  Task *tasks, *last;
};

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;  // one outermost region at a time
static Clock world;        // all that happened in regions before
static int turn_around;    // odd: the last thread begins
static int regions, largest, wanted, levels = 1;
static bool dynamic_teams;
static int running_schedule = 1;

static int cores() {
  cpu_set_t set;
  const int count = sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
  return count < 2 ? 2 : count > 4 ? 4 : count;
}
// What a team has that nobody gave a size: as in a run without us.
static int usual() {
  if (wanted) return wanted;
  const char* told = getenv("OMP_NUM_THREADS");
  const int count = told ? atoi(told) : 0;
  return count > 0 ? count : cores();
}
static void tick(Thread* t) { ++t->clock.at[t->tid]; }

// --- the baton -----------------------------------------------------------------------------------

static void ring(Thread* t) {
  pthread_mutex_lock(&t->door);
  t->turn = true;
  pthread_cond_signal(&t->bell);
  pthread_mutex_unlock(&t->door);
}
static void sleep_until_rung(Thread* t) {
  pthread_mutex_lock(&t->door);
  while (!t->turn) pthread_cond_wait(&t->bell, &t->door);
  t->turn = false;
  pthread_mutex_unlock(&t->door);
}
static bool can_run(const Thread& t) { return t.alive && (!t.waits || t.waits(t.waits_for)); }
static void pass(Thread* t) {  // to the next thread that can go on, back when it is our turn
  for (int k = 1; k <= thread_count; ++k) {
    const int step = turn_around & 1 ? thread_count - k : k;
    Thread* next = &threads[(t->tid + step) % thread_count];
    if (next == t && !can_run(*t)) continue;
    if (next == t) return;
    if (!can_run(*next)) continue;
    ring(next);
    sleep_until_rung(t);
    return;
  }
  give_up("its threads wait for each other");
  sleep_until_rung(t);  // for ever: the judge ends the process
}
static void wait_until(Thread* t, bool (*done)(void*), void* what) {
  if (done(what)) return;
  t->waits = done;
  t->waits_for = what;
  pass(t);
  t->waits = nullptr;
}
static void preempt(Thread* t) {
  t->quantum = QUANTUM;
  if (!t->locks) pass(t);
}

static inline bool is_own(const Thread* t, const void* at, uintptr_t here) {
  return (uintptr_t)at - here < t->edge - here;
}
static __attribute__((noinline)) void access(const void* at, size_t size, uint8_t kind, void* pc) {
  Thread* t = me;
  settle(t);
  if (--t->quantum < 0) preempt(t);
  ++looked;
  if (--budget < 0) return give_up("it makes more accesses than are looked at");
  if (is_own(t, at, (uintptr_t)__builtin_frame_address(0)) || !size) return;
  touch(t, Access{at, size, (uint32_t)((char*)pc - __ehdr_start), kind});
}
static inline void see(const void* at, size_t size, uint8_t kind, void* pc) {
  if (watching && me) access(at, size, kind, pc);
}

// --- locks ---------------------------------------------------------------------------------------

static bool is_free(void* lock) { return ((Lock*)lock)->owner < 0; }
static void take(Thread* t, const void* name) {
  settle(t);
  const int number = lock_of(name);
  if (number < 0) return;
  Lock& lock = locks[number];
  if (lock.owner == t->tid) { ++lock.depth; return; }
  bool after = !is_free(&lock);
  wait_until(t, is_free, &lock);
  for (int k = 0; k < thread_count; ++k)  // whoever cannot have taken it earlier comes after its holder
    after |= k != t->tid && lock.taken.at[k] && t->clock.at[k] >= lock.taken.at[k];
  if (after) t->clock.join(lock.released, thread_count);
  lock.owner = t->tid;
  lock.depth = 1;
  lock.taken.at[t->tid] = t->clock.at[t->tid];
  tick(t);
  t->locks = with(t->locks, number);
}
static bool try_take(Thread* t, const void* name) {
  const int number = lock_of(name);
  if (number < 0) return true;
  Lock& lock = locks[number];
  if (lock.owner < 0 || lock.owner == t->tid) { take(t, name); return true; }
  settle(t);
  t->clock.join(threads[lock.owner].clock, thread_count);
  tick(&threads[lock.owner]);
  preempt(t);
  return false;
}
static void drop(Thread* t, const void* name) {
  settle(t);
  const int number = lock_of(name);
  if (number < 0) return;
  Lock& lock = locks[number];
  if (--lock.depth > 0) return;
  lock.released.join(t->clock, thread_count);
  lock.owner = -1;
  tick(t);
  t->locks = without(t->locks, number);
  if ((t->quantum -= QUANTUM / 500) < 0) preempt(t);  // it may be asking again and again
}

// --- atomics -------------------------------------------------------------------------------------

struct Sync { const void* at; Clock told; };
constexpr int SYNCS = 1 << 13;
static Sync* syncs;  // an open table; when it is full all share one entry, which orders more
static Sync spare;
static int sync_count;

static Sync* sync_at(const void* at, bool make) {
  if (!syncs) syncs = (Sync*)fresh(sizeof(Sync) * SYNCS);
  if (!syncs) return &spare;
  size_t k = ((uintptr_t)at >> 2) * 0x9e3779b97f4a7c15ull >> 51;
  for (; syncs[k].at; k = (k + 1) % SYNCS)
    if (syncs[k].at == at) return &syncs[k];
  if (!make) return sync_count > SYNCS / 2 ? &spare : nullptr;
  if (sync_count > SYNCS / 2) return &spare;
  ++sync_count;
  syncs[k].at = at;
  return &syncs[k];
}
static void release(Thread* t, const void* at) {
  sync_at(at, true)->told.join(t->clock, thread_count);
  tick(t);
}
static void acquire(Thread* t, const void* at) {
  if (Sync* s = sync_at(at, false)) t->clock.join(s->told, thread_count);
}
static bool acquires(int order) { return order == 1 || order == 2 || order == 4 || order == 5; }
static bool releases(int order) { return order == 3 || order == 4 || order == 5; }
static void before_load(Thread* t, const void* at, int order) {
  if (acquires(order)) return acquire(t, at);
  if (Sync* s = sync_at(at, false)) t->acquired.join(s->told, thread_count);
}
static void before_store(Thread* t, const void* at, int order) {
  if (releases(order)) return release(t, at);
  if (t->fenced) sync_at(at, true)->told.join(t->fence, thread_count);
}
enum Form { LOAD, STORE, CHANGE, SWAP };
static void atomic(const void* at, size_t size, Form form, int order, void* pc) {
  if (!watching || !me) return;
  Thread* t = me;
  order &= 7;  // GCC keeps hints in the bits above
  access(at, size, form == LOAD ? ATOMIC : ATOMIC | WRITE, pc);
  if (!watching) return;
  if (form == LOAD && !is_own(t, at, (uintptr_t)__builtin_frame_address(0))) {
    t->loads = true;
    t->loaded = at;
    t->loaded_size = size;
    t->loaded_value = 0;
    memcpy(&t->loaded_value, at, size);
    t->loaded_pc = (uint32_t)((char*)pc - __ehdr_start);
  }
  // Relaxed ones that hand something over work on the processors that we know: a counter that tells
  // the last one that all are there, a flag without a flush.
  order = form == CHANGE ? 4 : form == STORE ? 3 : form == LOAD ? 2 : order;
  if (form == LOAD || form == SWAP) t->quantum -= QUANTUM / 100;  // it may be waiting
  if (form != STORE) before_load(t, at, order);
  if (form != LOAD) before_store(t, at, order);
}
static void volatile_access(const void* at, size_t size, uint8_t kind, void* pc) {
  if (!watching || !me) return;
  access(at, size, kind | VOLATILE, pc);
  if (!watching) return;
  if (kind & WRITE) release(me, at);
  else { acquire(me, at); me->quantum -= QUANTUM / 1000; }
}

// --- tasks ---------------------------------------------------------------------------------------

static void run_task(Thread* t, Task* task) {
  settle(t);
  Task* const outer = t->task;
  Group* const group = t->group;
  t->task = task;
  t->group = task->group;
  t->clock.join(task->created, thread_count);
  task->body(task->data);
  settle(t);
  t->task = outer;
  t->group = group;
  if (task->parent) { --task->parent->unfinished; task->parent->ended.join(t->clock, thread_count); }
  for (Group* g = task->group; g; g = g->outer) { --g->unfinished; g->ended.join(t->clock, thread_count); }
  --t->team->outstanding;
  tick(t);
}
static Task* queued(Team* team, bool (*fits)(const Task*, const void*), const void* what) {
  for (Task** at = &team->tasks; *at; at = &(*at)->next)
    if (fits(*at, what)) {
      Task* found = *at;
      *at = found->next;
      if (team->last == found) {
        team->last = nullptr;
        for (Task* k = team->tasks; k; k = k->next) team->last = k;
      }
      found->queued = false;
      return found;
    }
  return nullptr;
}
static bool is_for(const Task* task, const void* number) { return task->target == *(const int*)number; }
static bool is_child(const Task* task, const void* parent) { return task->parent == parent; }
static bool is_in(const Task* task, const void* group) {
  for (const Group* g = task->group; g; g = g->outer)
    if (g == group) return true;
  return false;
}
static Task* new_task(Thread* t, void (*body)(void*), void* data) {
  Task* task = (Task*)calloc(1, sizeof(Task));
  task->body = body;
  task->data = data;
  task->parent = t->task;
  task->group = t->group;
  task->created = t->clock;
  if (task->parent) ++task->parent->unfinished;
  for (Group* g = task->group; g; g = g->outer) ++g->unfinished;
  ++t->team->outstanding;
  tick(t);
  return task;
}
static void start_task(Thread* t, Task* task, bool now) {
  Team* team = t->team;
  task->target = (int)(team->dealt++ % team->size);
  if (now || !watching || task->target == t->number) return run_task(t, task);
  task->queued = true;
  (team->tasks ? team->last->next : team->tasks) = task;
  team->last = task;
}
static bool always(void*) { return true; }
static bool task_is_done(void* task) { return !((Task*)task)->unfinished; }
static bool group_is_done(void* group) { return !((Group*)group)->unfinished; }
static void others_first(Thread* t) {
  t->waits = always;
  pass(t);
  t->waits = nullptr;
}
struct Awaited { Team* team; void* what; bool (*done)(void*); bool (*fits)(const Task*, const void*); };
static bool is_there(void* awaited) {
  const Awaited* a = (const Awaited*)awaited;
  for (const Task* task = a->team->tasks; task; task = task->next)
    if (a->fits(task, a->what)) return true;
  return a->done(a->what);
}
static void wait_for_tasks(Thread* t, bool group) {
  settle(t);
  void* what = group ? (void*)t->group : (void*)t->task;
  bool (*const done)(void*) = group ? group_is_done : task_is_done;
  if (!done(what)) others_first(t);
  const Awaited awaited{t->team, what, done, group ? is_in : is_child};
  while (!done(what)) {
    if (Task* task = queued(t->team, awaited.fits, what)) run_task(t, task);
    else wait_until(t, is_there, (void*)&awaited);
  }
  t->clock.join(group ? ((Group*)what)->ended : ((Task*)what)->ended, thread_count);
}

// --- meeting -------------------------------------------------------------------------------------

struct Meeting { Team* team; unsigned generation; int number; };
static bool complete(Team* team) { return team->arrived == team->size && !team->outstanding; }
static bool may_go_on(void* meeting) {
  const Meeting* m = (const Meeting*)meeting;
  if (m->team->generation != m->generation || complete(m->team)) return true;
  for (Task* task = m->team->tasks; task; task = task->next)
    if (task->target == m->number) return true;
  return false;
}
static void barrier(Thread* t) {
  Team* team = t->team;
  if (!team) return;
  settle(t);
  Meeting m{team, team->generation, t->number};
  Clock& meeting = team->meeting[m.generation & 1];
  ++team->arrived;
  for (;;) {
    meeting.join(t->clock, thread_count);
    if (team->generation != m.generation) break;
    if (Task* task = queued(team, is_for, &t->number)) { run_task(t, task); continue; }
    if (complete(team)) {
      team->arrived = 0;
      ++team->generation;
      team->meeting[team->generation & 1] = Clock{};
      break;
    }
    wait_until(t, may_go_on, &m);
  }
  t->clock.join(meeting, thread_count);
  tick(t);
}

// --- teams ---------------------------------------------------------------------------------------

static void* life(void* thread) {
  Thread* t = me = (Thread*)thread;
  for (;;) {
    sleep_until_rung(t);
    t->edge = (uintptr_t)__builtin_frame_address(0) + 512;
    t->body(t->data);
    barrier(t);
    settle(t);
    t->alive = false;
    t->team = nullptr;
    t->waits = nullptr;
    for (int k = 0; k < thread_count; ++k) {
      Thread* next = &threads[(t->tid + 1 + k) % thread_count];
      if (can_run(*next)) { ring(next); break; }
      if (k == thread_count - 1) give_up("its threads wait for each other");
    }
  }
  return nullptr;
}
static bool born(int tid) {
  Thread* t = &threads[tid];
  t->tid = tid;
  pthread_attr_t how;
  pthread_attr_init(&how);
  pthread_attr_setstacksize(&how, 8 << 20);
  pthread_t made;
  return !pthread_create(&made, &how, life, t);
}
static Thread* hired(Team* team, int number) {
  int tid = 1;
  while (tid < MOST && threads[tid].alive) ++tid;
  if (tid == MOST) { give_up("more threads than are looked at"); return nullptr; }
  if (tid >= thread_count) {
    if (!born(tid)) { give_up("no further thread could be started"); return nullptr; }
    thread_count = tid + 1;
  }
  Thread* t = &threads[tid];
  t->team = team;
  t->number = number;
  return t;
}
struct Part { Team* team; int number, shares; long deal; Share* share; Task* task; Group* group; uintptr_t edge; };
static Part part_of(const Thread* t) {
  return {t->team, t->number, t->shares, t->deal, t->share, t->task, t->group, t->edge};
}
static void play(Thread* t, const Part& p) {
  t->team = p.team; t->number = p.number; t->shares = p.shares; t->deal = p.deal;
  t->share = p.share; t->task = p.task; t->group = p.group; t->edge = p.edge;
}
typedef void (*Prepare)(Team*, const void*);

static Share* share_number(Team* team, int number) {
  if (number >= team->share_room) {
    const int room = number * 2 + 8;
    team->shares = (Share**)realloc(team->shares, sizeof(Share*) * room);
    memset(team->shares + team->share_room, 0, sizeof(Share*) * (room - team->share_room));
    team->share_room = room;
  }
  if (!team->shares[number]) team->shares[number] = (Share*)calloc(1, sizeof(Share));
  return team->shares[number];
}
static void begin_part(Thread* t, Team* team, int number, Task* task) {
  const bool prepared = team->share_room > 0;  // parallel and its loop in one call
  play(t, Part{team, number, prepared, -1, prepared ? team->shares[0] : nullptr, task, nullptr, t->edge});
}
static void alone(Thread* t, Team* team, void (*body)(void*), void* data, uintptr_t edge) {
  const Part before = part_of(t);
  Task implicit{};
  begin_part(t, team, 0, &implicit);
  t->edge = edge;
  body(data);
  barrier(t);
  play(t, before);
}
static bool all_left(void* team) {
  const Team* of = (const Team*)team;
  for (int k = 1; k < of->size; ++k)
    if (threads[of->members[k]].alive && threads[of->members[k]].team == of) return false;
  return true;
}
static void region(Thread* t, Team* team, void (*body)(void*), void* data, uintptr_t edge) {
  settle(t);
  Task implicit[MOST] = {};
  int count = 1;
  for (; count < team->size; ++count) {
    Thread* other = hired(team, count);
    if (!other) break;
    other->alive = true;
    other->clock.join(t->clock, thread_count);
    other->body = body;
    other->data = data;
    other->waits = nullptr;
    other->locks = 0;
    other->fenced = false;
    other->acquired = Clock{};
    other->quantum = QUANTUM;
    begin_part(other, team, count, &implicit[count]);
    tick(other);
    team->members[count] = other->tid;
  }
  team->size = count;
  if (count > largest) largest = count;
  tick(t);
  const Part before = part_of(t);
  begin_part(t, team, 0, &implicit[0]);
  t->edge = edge;
  t->quantum = QUANTUM;
  if (turn_around & 1 && count > 1) others_first(t);
  body(data);
  barrier(t);
  settle(t);
  wait_until(t, all_left, team);
  play(t, before);
}
static Thread* enter(uintptr_t edge) {
  pthread_mutex_lock(&gate);
  Thread* t = &threads[0];
  t->clock.join(world, thread_count);
  tick(t);
  t->alive = true;
  t->locks = 0;
  t->fenced = false;
  t->acquired = Clock{};
  t->edge = edge;
  return me = t;
}
static void leave(Thread* t) {
  world.join(t->clock, thread_count);
  t->alive = false;
  me = nullptr;
  pthread_mutex_unlock(&gate);
}
static void parallel(void (*body)(void*), void* data, unsigned asked, uintptr_t edge, Prepare prepare, const void* how) {
  Thread* t = me;
  const bool outermost = !t;
  const int active = outermost ? 0 : t->team->active;
  int size = asked ? (int)asked : usual();
  if (active >= levels) size = 1;
  if (size > MOST) { give_up("more threads than are looked at"); size = MOST; }
  Team* team = (Team*)calloc(1, sizeof(Team));
  team->size = size;
  team->outer = outermost ? nullptr : t->team;
  team->outer_number = outermost ? 0 : t->number;
  team->level = (outermost ? 0 : t->team->level) + 1;
  team->active = active + (size > 1);
  if (prepare) prepare(team, how);
  if (outermost) t = enter(edge);
  const bool first = size > 1 && !active;
  if (first) {
    watching = !off;
    ++regions;
    ++turn_around;
  }
  if (size > 1) region(t, team, body, data, edge);
  else alone(t, team, body, data, t->edge);
  if (first) {
    watching = false;
    end_doubts();
    if (syncs) memset((void*)syncs, 0, sizeof(Sync) * SYNCS);
    sync_count = 0;
    spare = Sync{};
  }
  if (outermost) leave(t);
}

// --- shares of a team ----------------------------------------------------------------------------

struct Loop { bool up, wide, fixed; long start, end, step, chunk; };
static void divide(Team* team, Share* s, const Loop& loop) {
  if (s->ready) return;
  s->ready = true;
  s->up = loop.up;
  s->start = loop.start;
  s->end = loop.end;
  s->step = loop.step;
  unsigned long span = 0, step = loop.step;
  const unsigned long start = loop.start, end = loop.end;
  if (loop.wide) {  // unsigned: a step downwards is a large number
    if (!loop.up) step = -step;
    if (loop.up ? start < end : start > end) span = loop.up ? end - start : start - end;
  } else {
    if (loop.step < 0) step = -step;
    if (loop.step < 0 ? loop.start > loop.end : loop.start < loop.end)
      span = loop.step < 0 ? start - end : end - start;
  }
  s->total = span ? (long)((span - 1) / step + 1) : 0;
  s->chunk = loop.chunk > 0 ? loop.chunk : loop.fixed ? (s->total + team->size - 1) / team->size : 1;
  if (s->chunk < 1) s->chunk = 1;
  s->chunks = (s->total + s->chunk - 1) / s->chunk;
}
static Share* next_share(Thread* t) {
  t->deal = -1;
  t->share = share_number(t->team, t->shares++);
  return t->share;
}
static long dealt(Thread* t) {  // its next chunk
  Share* s = t->share;
  t->deal = t->deal < 0 ? (t->number + (turn_around >> 1)) % t->team->size : t->deal + t->team->size;
  return t->deal < s->chunks ? t->deal : -1;
}
static bool is_its_turn(void* thread) {
  const Thread* t = (const Thread*)thread;
  return t->share->ordered == t->deal;
}
static void end_chunk(Thread* t, bool ordered) {
  if (!ordered || t->deal < 0 || t->deal >= t->share->chunks) return;
  settle(t);
  wait_until(t, is_its_turn, t);
  ++t->share->ordered;
}
static bool next_chunk(Thread* t, bool ordered, long* from, long* to) {
  settle(t);
  end_chunk(t, ordered);
  const long k = dealt(t);
  if (k < 0) return false;
  const Share* s = t->share;
  const long first = k * s->chunk, last = first + s->chunk;
  *from = s->start + first * s->step;
  *to = last >= s->total ? s->end : s->start + last * s->step;
  return true;
}
static Share* share_of(Thread* t, const Loop& loop) {
  Share* s = next_share(t);
  divide(t->team, s, loop);
  return s;
}
static void prepare_loop(Team* team, const void* loop) { divide(team, share_number(team, 0), *(const Loop*)loop); }
static void prepare_sections(Team* team, const void* count) {
  Share* s = share_number(team, 0);
  s->ready = true;
  s->chunks = *(const unsigned*)count;
}

// Worksharing outside of any region is for one thread.
static __thread Thread* lone_thread __attribute__((tls_model("initial-exec")));
static Thread* self() {
  if (me) return me;
  if (!lone_thread) {
    lone_thread = (Thread*)calloc(1, sizeof(Thread));
    lone_thread->team = (Team*)calloc(1, sizeof(Team));
    lone_thread->team->size = 1;
    lone_thread->task = (Task*)calloc(1, sizeof(Task));
  }
  return lone_thread;
}
}  // namespace kf

using namespace kf;
#define HERE ((uintptr_t)__builtin_frame_address(0))
#define PC __builtin_return_address(0)
extern "C" {
// --- what the judge asks -------------------------------------------------------------------------

struct Report { int races, regions, threads, stopped; long looked; const char* why; Race race[RACES]; };
__attribute__((visibility("default"))) void kf_races_begin(int call) {
  turn_around = call * 3;
  if (!off) budget = ACCESSES;
}
__attribute__((visibility("default"))) void kf_races_report(Report* to) {
  *to = Report{race_count, regions, largest, off, looked, why_off, {}};
  memcpy(to->race, races, sizeof races);
}

// --- accesses ------------------------------------------------------------------------------------

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
#define KF_SIZE(n) \
  void __tsan_read##n(void* p) { see(p, n, READ, PC); } \
  void __tsan_write##n(void* p) { see(p, n, WRITE, PC); } \
  void __tsan_unaligned_read##n(void* p) { see(p, n, READ, PC); } \
  void __tsan_unaligned_write##n(void* p) { see(p, n, WRITE, PC); } \
  void __tsan_volatile_read##n(void* p) { volatile_access(p, n, READ, PC); } \
  void __tsan_volatile_write##n(void* p) { volatile_access(p, n, WRITE, PC); } \
  void __tsan_unaligned_volatile_read##n(void* p) { volatile_access(p, n, READ, PC); } \
  void __tsan_unaligned_volatile_write##n(void* p) { volatile_access(p, n, WRITE, PC); }
KF_SIZE(1) KF_SIZE(2) KF_SIZE(4) KF_SIZE(8) KF_SIZE(16)
void __tsan_read_range(void* p, unsigned long n) { see(p, n, READ, PC); }
void __tsan_write_range(void* p, unsigned long n) { see(p, n, WRITE, PC); }
void __tsan_vptr_update(void** p, void* v) { if (*p != v) see(p, sizeof *p, WRITE, PC); }
void __tsan_vptr_read(void** p) { see(p, sizeof *p, READ, PC); }

#define KF_ATOMIC(bits, T) \
  T __tsan_atomic##bits##_load(const volatile T* p, int o) { atomic((const void*)p, sizeof(T), LOAD, o, PC); return __atomic_load_n(p, 5); } \
  void __tsan_atomic##bits##_store(volatile T* p, T v, int o) { atomic((const void*)p, sizeof(T), STORE, o, PC); __atomic_store_n(p, v, 5); } \
  T __tsan_atomic##bits##_exchange(volatile T* p, T v, int o) { atomic((const void*)p, sizeof(T), CHANGE, o, PC); return __atomic_exchange_n(p, v, 5); } \
  T __tsan_atomic##bits##_fetch_add(volatile T* p, T v, int o) { atomic((const void*)p, sizeof(T), CHANGE, o, PC); return __atomic_fetch_add(p, v, 5); } \
  T __tsan_atomic##bits##_fetch_sub(volatile T* p, T v, int o) { atomic((const void*)p, sizeof(T), CHANGE, o, PC); return __atomic_fetch_sub(p, v, 5); } \
  T __tsan_atomic##bits##_fetch_and(volatile T* p, T v, int o) { atomic((const void*)p, sizeof(T), CHANGE, o, PC); return __atomic_fetch_and(p, v, 5); } \
  T __tsan_atomic##bits##_fetch_or(volatile T* p, T v, int o) { atomic((const void*)p, sizeof(T), CHANGE, o, PC); return __atomic_fetch_or(p, v, 5); } \
  T __tsan_atomic##bits##_fetch_xor(volatile T* p, T v, int o) { atomic((const void*)p, sizeof(T), CHANGE, o, PC); return __atomic_fetch_xor(p, v, 5); } \
  T __tsan_atomic##bits##_fetch_nand(volatile T* p, T v, int o) { atomic((const void*)p, sizeof(T), CHANGE, o, PC); return __atomic_fetch_nand(p, v, 5); } \
  bool __tsan_atomic##bits##_compare_exchange_strong(volatile T* p, T* e, T v, int o, int) { atomic((const void*)p, sizeof(T), SWAP, o, PC); return __atomic_compare_exchange_n(p, e, v, 0, 5, 5); } \
  bool __tsan_atomic##bits##_compare_exchange_weak(volatile T* p, T* e, T v, int o, int) { atomic((const void*)p, sizeof(T), SWAP, o, PC); return __atomic_compare_exchange_n(p, e, v, 0, 5, 5); } \
  T __tsan_atomic##bits##_compare_exchange_val(volatile T* p, T e, T v, int o, int) { atomic((const void*)p, sizeof(T), SWAP, o, PC); __atomic_compare_exchange_n(p, &e, v, 0, 5, 5); return e; }
KF_ATOMIC(8, uint8_t) KF_ATOMIC(16, uint16_t) KF_ATOMIC(32, uint32_t) KF_ATOMIC(64, uint64_t)
void __tsan_atomic_signal_fence(int) {}
void __tsan_atomic_thread_fence(int order) {
  if (!watching || !me) return;
  settle(me);
  if (acquires(order & 7)) me->clock.join(me->acquired, thread_count);
  if (releases(order & 7)) {
    me->fence = me->clock;
    me->fenced = true;
    tick(me);
  }
}

// --- libc: the kernel's own calls are given these names (build.py) --------------------------------

void* _Znwm(size_t);
void* _Znam(size_t);
void* _ZnwmSt11align_val_t(size_t, size_t);
void* _ZnamSt11align_val_t(size_t, size_t);
int __cxa_guard_acquire(long*);
void __cxa_guard_release(long*);
void __cxa_guard_abort(long*);

static void* had(void* memory) {
  if (watching && me && memory) { settle(me); forget(memory, malloc_usable_size(memory)); }
  return memory;
}
void* kf_malloc(size_t n) { return had(malloc(n)); }
void* kf_calloc(size_t a, size_t b) { return had(calloc(a, b)); }
void* kf_realloc(void* p, size_t n) { had(p); return had(realloc(p, n)); }
void* kf_aligned_alloc(size_t a, size_t n) { return had(aligned_alloc(a, n)); }
int kf_posix_memalign(void** p, size_t a, size_t n) {
  const int code = posix_memalign(p, a, n);
  if (!code) had(*p);
  return code;
}
void kf_free(void* p) { free(had(p)); }
void* kf__Znwm(size_t n) { return had(_Znwm(n)); }
void* kf__Znam(size_t n) { return had(_Znam(n)); }
void* kf__ZnwmSt11align_val_t(size_t n, size_t a) { return had(_ZnwmSt11align_val_t(n, a)); }
void* kf__ZnamSt11align_val_t(size_t n, size_t a) { return had(_ZnamSt11align_val_t(n, a)); }
#define KF_DELETE(name, parameters, arguments) \
  void name parameters; \
  void kf_##name parameters { had(p); name arguments; }
KF_DELETE(_ZdlPv, (void* p), (p))
KF_DELETE(_ZdaPv, (void* p), (p))
KF_DELETE(_ZdlPvm, (void* p, size_t n), (p, n))
KF_DELETE(_ZdaPvm, (void* p, size_t n), (p, n))
KF_DELETE(_ZdlPvSt11align_val_t, (void* p, size_t a), (p, a))
KF_DELETE(_ZdaPvSt11align_val_t, (void* p, size_t a), (p, a))
KF_DELETE(_ZdlPvmSt11align_val_t, (void* p, size_t n, size_t a), (p, n, a))
KF_DELETE(_ZdaPvmSt11align_val_t, (void* p, size_t n, size_t a), (p, n, a))
void* kf_mmap(void* p, size_t n, int a, int b, int c, off_t d) {
  void* made = mmap(p, n, a, b, c, d);
  if (me && made != MAP_FAILED) forget(made, n);
  return made;
}
int kf_munmap(void* p, size_t n) {
  if (me) forget(p, n);
  return munmap(p, n);
}
void* kf_memcpy(void* to, const void* from, size_t n) {
  see(from, n, READ, PC);
  see(to, n, WRITE, PC);
  return memcpy(to, from, n);
}
void* kf_memmove(void* to, const void* from, size_t n) {
  see(from, n, READ, PC);
  see(to, n, WRITE, PC);
  return memmove(to, from, n);
}
void* kf_memset(void* to, int v, size_t n) { see(to, n, WRITE, PC); return memset(to, v, n); }
int kf_pthread_mutex_lock(pthread_mutex_t* m) { if (me) take(me, m); return pthread_mutex_lock(m); }
int kf_pthread_mutex_unlock(pthread_mutex_t* m) { if (me) drop(me, m); return pthread_mutex_unlock(m); }
int kf_pthread_mutex_trylock(pthread_mutex_t* m) {
  if (me && !try_take(me, m)) return 16;  // EBUSY
  const int code = pthread_mutex_trylock(m);
  if (me && code) drop(me, m);
  return code;
}
int kf___cxa_guard_acquire(long* g) {
  if (me) take(me, g);
  const int mine = __cxa_guard_acquire(g);
  if (!me) return mine;
  if (!mine) { acquire(me, g); drop(me, g); }
  return mine;
}
void kf___cxa_guard_release(long* g) {
  __cxa_guard_release(g);
  if (me) { release(me, g); drop(me, g); }
}
void kf___cxa_guard_abort(long* g) {
  __cxa_guard_abort(g);
  if (me) drop(me, g);
}
int kf_sched_yield() { if (me) preempt(me); else usleep(0); return 0; }

// --- libgomp -------------------------------------------------------------------------------------

typedef void (*Body)(void*);
typedef unsigned long long ull;
void GOMP_parallel(Body f, void* d, unsigned n, unsigned) { parallel(f, d, n, HERE, nullptr, nullptr); }
void GOMP_parallel_sections(Body f, void* d, unsigned n, unsigned count, unsigned) { parallel(f, d, n, HERE, prepare_sections, &count); }
void GOMP_barrier() { if (me) barrier(me); }
bool GOMP_barrier_cancel() { if (me) barrier(me); return false; }
bool GOMP_cancel(int, bool) { return false; }
bool GOMP_cancellation_point(int) { return false; }

static char unnamed, atomics;
void GOMP_critical_start() { if (me) take(me, &unnamed); }
void GOMP_critical_end() { if (me) drop(me, &unnamed); }
void GOMP_critical_name_start(void** name) { if (me) take(me, name); }
void GOMP_critical_name_end(void** name) { if (me) drop(me, name); }
void GOMP_atomic_start() { if (me) take(me, &atomics); }
void GOMP_atomic_end() { if (me) drop(me, &atomics); }

bool GOMP_single_start() {
  Thread* t = self();
  if (t->team->size < 2) return true;
  settle(t);
  const int number = t->shares++;
  return t->number == (number + (turn_around >> 1)) % t->team->size;
}
void* GOMP_single_copy_start() {
  Thread* t = self();
  if (t->team->size < 2) return nullptr;
  const int number = t->shares++;
  t->share = share_number(t->team, number);
  if (t->number == (number + (turn_around >> 1)) % t->team->size) return nullptr;
  Share* s = t->share;
  barrier(t);
  return s->copy;
}
void GOMP_single_copy_end(void* data) {
  Thread* t = self();
  if (t->team->size < 2) return;
  t->share->copy = data;
  barrier(t);
}
#define KF_LOOP(kind, fixed, ordered) \
  bool GOMP_loop_##kind##_start(long a, long b, long i, long c, long* x, long* y) { Thread* t = self(); share_of(t, {true, false, fixed, a, b, i, c}); return next_chunk(t, ordered, x, y); } \
  bool GOMP_loop_##kind##_next(long* x, long* y) { return next_chunk(self(), ordered, x, y); } \
  bool GOMP_loop_ull_##kind##_start(bool up, ull a, ull b, ull i, ull c, ull* x, ull* y) { Thread* t = self(); share_of(t, {up, true, fixed, (long)a, (long)b, (long)i, (long)c}); return next_chunk(t, ordered, (long*)x, (long*)y); } \
  bool GOMP_loop_ull_##kind##_next(ull* x, ull* y) { return next_chunk(self(), ordered, (long*)x, (long*)y); }
#define KF_RUNTIME(kind, ordered) \
  bool GOMP_loop_##kind##_start(long a, long b, long i, long* x, long* y) { Thread* t = self(); share_of(t, {true, false, false, a, b, i, running_schedule}); return next_chunk(t, ordered, x, y); } \
  bool GOMP_loop_##kind##_next(long* x, long* y) { return next_chunk(self(), ordered, x, y); } \
  bool GOMP_loop_ull_##kind##_start(bool up, ull a, ull b, ull i, ull* x, ull* y) { Thread* t = self(); share_of(t, {up, true, false, (long)a, (long)b, (long)i, running_schedule}); return next_chunk(t, ordered, (long*)x, (long*)y); } \
  bool GOMP_loop_ull_##kind##_next(ull* x, ull* y) { return next_chunk(self(), ordered, (long*)x, (long*)y); }
KF_LOOP(static, true, false) KF_LOOP(dynamic, false, false) KF_LOOP(guided, false, false)
KF_LOOP(nonmonotonic_dynamic, false, false) KF_LOOP(nonmonotonic_guided, false, false)
KF_LOOP(ordered_static, true, true) KF_LOOP(ordered_dynamic, false, true) KF_LOOP(ordered_guided, false, true)
KF_RUNTIME(runtime, false) KF_RUNTIME(nonmonotonic_runtime, false) KF_RUNTIME(maybe_nonmonotonic_runtime, false)
KF_RUNTIME(ordered_runtime, true)
#define KF_PARALLEL(kind, fixed) \
  void GOMP_parallel_loop_##kind(Body f, void* d, unsigned n, long a, long b, long i, long c, unsigned) { const Loop loop = {true, false, fixed, a, b, i, c}; parallel(f, d, n, HERE, prepare_loop, &loop); }
KF_PARALLEL(static, true) KF_PARALLEL(dynamic, false) KF_PARALLEL(guided, false)
KF_PARALLEL(nonmonotonic_dynamic, false) KF_PARALLEL(nonmonotonic_guided, false)
#define KF_PARALLEL_RUNTIME(kind) \
  void GOMP_parallel_loop_##kind(Body f, void* d, unsigned n, long a, long b, long i, unsigned) { const Loop loop = {true, false, false, a, b, i, running_schedule}; parallel(f, d, n, HERE, prepare_loop, &loop); }
KF_PARALLEL_RUNTIME(runtime) KF_PARALLEL_RUNTIME(nonmonotonic_runtime) KF_PARALLEL_RUNTIME(maybe_nonmonotonic_runtime)
void GOMP_loop_end() { GOMP_barrier(); }
bool GOMP_loop_end_cancel() { return GOMP_barrier_cancel(); }
void GOMP_loop_end_nowait() {}
void GOMP_ordered_start() {
  if (!me || !me->share) return;
  settle(me);
  wait_until(me, is_its_turn, me);
  me->clock.join(me->share->order, thread_count);
}
void GOMP_ordered_end() {
  if (!me || !me->share) return;
  settle(me);
  me->share->order.join(me->clock, thread_count);
  tick(me);
}
unsigned GOMP_sections_next() { return (unsigned)(dealt(self()) + 1); }
unsigned GOMP_sections_start(unsigned count) {
  Share* s = next_share(self());
  s->ready = true;
  s->chunks = count;
  return GOMP_sections_next();
}
void GOMP_sections_end() { GOMP_barrier(); }
bool GOMP_sections_end_cancel() { return GOMP_barrier_cancel(); }
void GOMP_sections_end_nowait() {}

enum { DEPENDS = 8, GRAIN = 1 << 9, NO_GROUP = 1 << 11, DETACHED = 1 << 13 };
static char* room_for(long size, long align) {
  char* memory = (char*)calloc(1, size + align + 16);
  if (watching) forget(memory, size + align + 16);
  return (char*)(((uintptr_t)memory + align) / align * align);
}
static Task* task_with(Body f, void* d, void (*copy)(void*, void*), long size, long align) {
  settle(self());
  char* data = room_for(size, align < 1 ? 1 : align);
  if (copy) copy(data, d);
  else memcpy(data, d, size);
  return new_task(self(), f, data);
}
void GOMP_task(Body f, void* d, void (*copy)(void*, void*), long size, long align, bool deferred, unsigned flags, void**, int, void*) {
  if (flags & DETACHED) give_up("it detaches tasks");
  start_task(self(), task_with(f, d, copy, size, align), !deferred || flags & DEPENDS || self()->team->size < 2);
}
void GOMP_taskwait() { Thread* t = self(); wait_for_tasks(t, false); }
void GOMP_taskwait_depend(void**) { GOMP_taskwait(); }
void GOMP_taskyield() {}
void GOMP_taskgroup_start() {
  Thread* t = self();
  Group* g = (Group*)calloc(1, sizeof(Group));
  g->outer = t->group;
  t->group = g;
}
void GOMP_taskgroup_end() {
  Thread* t = self();
  wait_for_tasks(t, true);
  t->group = t->group->outer;
}
static void task_loop(Body f, void* d, void (*copy)(void*, void*), long size, long align, unsigned flags, unsigned long count, const Loop& loop) {
  Thread* t = self();
  Team one{};
  one.size = (int)(count && !(flags & GRAIN) ? count < MOST ? count : MOST : 2 * t->team->size);
  Share whole{};
  divide(&one, &whole, loop);
  if (flags & GRAIN && count) { whole.chunk = (long)count; whole.chunks = (whole.total + whole.chunk - 1) / whole.chunk; }
  if (!(flags & NO_GROUP)) GOMP_taskgroup_start();
  for (long k = 0; k < whole.chunks; ++k) {
    Task* task = task_with(f, d, copy, size, align);
    const long first = k * whole.chunk, last = first + whole.chunk;
    ((long*)task->data)[0] = whole.start + first * whole.step;
    ((long*)task->data)[1] = last >= whole.total ? whole.end : whole.start + last * whole.step;
    start_task(t, task, t->team->size < 2);
  }
  if (!(flags & NO_GROUP)) GOMP_taskgroup_end();
}
void GOMP_taskloop(Body f, void* d, void (*copy)(void*, void*), long size, long align, unsigned flags, unsigned long count, int, long a, long b, long i) {
  task_loop(f, d, copy, size, align, flags, count, {true, false, true, a, b, i, 0});
}
void GOMP_taskloop_ull(Body f, void* d, void (*copy)(void*, void*), long size, long align, unsigned flags, unsigned long count, int, ull a, ull b, ull i) {
  task_loop(f, d, copy, size, align, flags, count, {(flags & 256) != 0, true, true, (long)a, (long)b, (long)i, 0});
}

// --- omp_* ---------------------------------------------------------------------------------------

int omp_get_thread_num() { return me ? me->number : 0; }
int omp_get_num_threads() { return me ? me->team->size : 1; }
int omp_get_max_threads() { return usual(); }
int omp_get_num_procs() { return cores(); }
int omp_get_thread_limit() { return MOST; }
void omp_set_num_threads(int n) { wanted = n > 0 ? n : 1; }
int omp_in_parallel() { return me && me->team->active > 0; }
void omp_set_dynamic(int on) { dynamic_teams = on; }
int omp_get_dynamic() { return dynamic_teams; }
void omp_set_nested(int on) { levels = on ? 8 : 1; }
int omp_get_nested() { return levels > 1; }
void omp_set_max_active_levels(int n) { levels = n < 0 ? levels : n; }
int omp_get_max_active_levels() { return levels; }
int omp_get_supported_active_levels() { return 8; }
int omp_get_level() { return me ? me->team->level : 0; }
int omp_get_active_level() { return me ? me->team->active : 0; }
int omp_get_ancestor_thread_num(int level) {
  if (!level) return 0;
  if (!me || level < 0 || level > me->team->level) return -1;
  int number = me->number;
  for (Team* team = me->team; team->level > level; team = team->outer) number = team->outer_number;
  return number;
}
int omp_get_team_size(int level) {
  if (!level) return 1;
  if (!me || level < 0 || level > me->team->level) return -1;
  Team* team = me->team;
  while (team->level > level) team = team->outer;
  return team->size;
}
void omp_set_schedule(int, int chunk) { running_schedule = chunk > 0 ? chunk : 1; }
void omp_get_schedule(int* kind, int* chunk) { *kind = 2; *chunk = running_schedule; }
int omp_in_final() { return 0; }
int omp_get_cancellation() { return 0; }
int omp_get_proc_bind() { return 0; }
int omp_get_num_places() { return 0; }
int omp_get_place_num() { return -1; }
int omp_is_initial_device() { return 1; }
int omp_get_num_devices() { return 0; }
int omp_get_default_device() { return 0; }
int omp_get_initial_device() { return 0; }
int omp_get_num_teams() { return 1; }
int omp_get_team_num() { return 0; }
double omp_get_wtime() { timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + 1e-9 * t.tv_nsec; }
double omp_get_wtick() { return 1e-9; }
void omp_init_lock(void*) {}
void omp_destroy_lock(void*) {}
void omp_init_lock_with_hint(void*, int) {}
void omp_set_lock(void* l) { if (me) take(me, l); }
void omp_unset_lock(void* l) { if (me) drop(me, l); }
int omp_test_lock(void* l) { return !me || try_take(me, l); }
void omp_init_nest_lock(void*) {}
void omp_destroy_nest_lock(void*) {}
void omp_init_nest_lock_with_hint(void*, int) {}
void omp_set_nest_lock(void* l) { omp_set_lock(l); }
void omp_unset_nest_lock(void* l) { omp_unset_lock(l); }
int omp_test_nest_lock(void* l) { return omp_test_lock(l) ? me ? locks[lock_of(l)].depth : 1 : 0; }
}
