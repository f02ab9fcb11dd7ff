// What each byte of memory was last used for, and by which thread: who was not ordered with whom.
// Only one thread of a team runs at a time (team.cpp), so nothing here needs a lock.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <pthread.h>
#include <sys/mman.h>

extern "C" char __ehdr_start[] __attribute__((visibility("hidden")));

namespace kf {
constexpr int MOST = 64;                 // threads of all teams that are alive together
constexpr size_t ROOM = 256u << 20;      // bytes of shadow, some nine a byte of the kernel's memory
constexpr long ACCESSES = 8 << 20;       // looked at in one call: some 0.2 s
constexpr long QUANTUM = 50000;          // accesses before another thread has its turn
constexpr int RACES = 8;

enum Kind : uint8_t { READ = 0, WRITE = 1, ATOMIC = 2, VOLATILE = 4 };

struct Clock {
  uint32_t at[MOST];
  void join(const Clock& other, int count) {
    for (int k = 0; k < count; ++k)
      if (other.at[k] > at[k]) at[k] = other.at[k];
  }
};
struct Slot { uint32_t clk, pc; uint8_t tid, kind; uint16_t locks; };  // clk 0: nobody yet
struct Cell { Slot write, read, other; };  // `other`: a reader that is not the thread of `read`
struct Race { uint32_t pc, other; uint8_t kind, other_kind; const void* at; };
struct Lock { const void* name; int owner, depth; Clock taken, released; };
struct Task;
struct Team;
struct Group;
struct Thread {
  int tid;
  Clock clock;
  uintptr_t edge;          // own frames lie below: nobody else knows their addresses
  uint16_t locks;
  long quantum;
  bool fenced, pends, loads;
  Clock fence, acquired;   // what a release fence publishes, what an acquire fence takes over
  Race pending;            // a write over another thread's value: a race unless it is the same
  size_t pending_size;
  uint64_t pending_hash;
  const void* loaded;      // an atomic load, and what was there: GCC does not show us the
  size_t loaded_size;      // compare-and-swap of `omp atomic` that follows
  uint64_t loaded_value;
  uint32_t loaded_pc;
  // its part in a team
  Team* team;
  int number, shares;      // worksharing constructs so far
  long deal;
  struct Share* share;
  Task* task;
  Group* group;
  // the baton
  bool (*waits)(void*);
  void* waits_for;
  bool alive;
  void (*body)(void*);
  void* data;
  pthread_mutex_t door = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t bell = PTHREAD_COND_INITIALIZER;
  bool turn;
};

static __thread Thread* me __attribute__((tls_model("initial-exec")));
static Thread threads[MOST];
static int thread_count = 1;      // so many have ever been there
static bool watching;             // inside a region of several threads
static bool off;                  // nothing is looked at any more
static const char* why_off = "";
static long budget = ACCESSES, looked;
static size_t room = ROOM;
static Race races[RACES];
static int race_count;

static void give_up(const char* why) {
  if (off) return;
  why_off = why;
  off = true;
  watching = false;
}
static void* fresh(size_t size) {
  void* made = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return made == MAP_FAILED ? nullptr : made;
}

// --- cells ---------------------------------------------------------------------------------------
// A page of 4 KiB has a cell for each 4 bytes until something smaller is used there, then one a byte.

constexpr int PAGE = 12, MIDDLE = 18;
constexpr uintptr_t BYTES = 1;           // in a page's pointer: it has a cell a byte
static uintptr_t* pages[1 << MIDDLE];    // by address bits 47..30, then 29..12
static char* pool;
static size_t pool_left;

static Cell* cells_of(size_t count) {
  const size_t size = (count * sizeof(Cell) + 63) / 64 * 64;
  if (size > room) { give_up("its memory is too large to be looked at as a whole"); return nullptr; }
  if (size > pool_left) {
    pool_left = 4 << 20;
    pool = (char*)fresh(pool_left);
    if (!pool) { pool_left = 0; give_up("no memory for the look at its memory"); return nullptr; }
  }
  room -= size;
  pool += size;
  pool_left -= size;
  return (Cell*)(pool - size);
}
static uintptr_t* page_at(uintptr_t at, bool make) {
  uintptr_t*& row = pages[at >> (PAGE + MIDDLE) & ((1 << MIDDLE) - 1)];
  if (!row) {
    if (!make) return nullptr;
    row = (uintptr_t*)fresh(sizeof(uintptr_t) << MIDDLE);
    if (!row) { give_up("no memory for the look at its memory"); return nullptr; }
  }
  uintptr_t* page = row + (at >> PAGE & ((1 << MIDDLE) - 1));
  if (!*page && make) *page = (uintptr_t)cells_of((1 << PAGE) / 4);
  return *page ? page : nullptr;
}
static bool split(uintptr_t* page) {
  Cell* bytes = cells_of(1 << PAGE);
  if (!bytes) return false;
  const Cell* words = (const Cell*)*page;
  for (int k = 0; k < 1 << PAGE; ++k) bytes[k] = words[k / 4];
  *page = (uintptr_t)bytes | BYTES;
  return true;
}
// Fresh memory, or memory that was given back: nobody has used it.
static void forget(const void* memory, size_t size) {
  if (!watching || !memory || !size) return;
  const uintptr_t end = (uintptr_t)memory + size;
  for (uintptr_t at = (uintptr_t)memory; at < end;) {
    const uintptr_t next = ((at >> PAGE) + 1) << PAGE, stop = next < end ? next : end;
    if (uintptr_t* page = page_at(at, false)) {
      const int shift = *page & BYTES ? 0 : 2;
      Cell* cells = (Cell*)(*page & ~BYTES);
      const uintptr_t mask = (1 << PAGE) - 1;
      const size_t first = (at & mask) >> shift, last = ((stop - 1) & mask) >> shift;
      memset((void*)(cells + first), 0, (last - first + 1) * sizeof(Cell));
    }
    at = next;
  }
}

// --- locks ---------------------------------------------------------------------------------------

constexpr int LOCKS = 4096, SETS = 4096, HELD = 8;
static Lock* locks;
static int lock_count;
struct Held { int count; uint16_t lock[HELD]; };
static Held sets[SETS];  // 0 is the empty one
static int set_count = 1;

static int lock_of(const void* name) {
  if (!locks) locks = (Lock*)fresh(sizeof(Lock) * LOCKS);
  if (!locks) { give_up("no memory for locks"); return -1; }
  for (int k = lock_count - 1; k >= 0; --k)
    if (locks[k].name == name) return k;
  if (lock_count == LOCKS) { give_up("too many locks"); return -1; }
  locks[lock_count].name = name;
  locks[lock_count].owner = -1;
  return lock_count++;
}
static uint16_t set_of(const Held& held) {
  for (int k = 0; k < set_count; ++k)
    if (sets[k].count == held.count && !memcmp(sets[k].lock, held.lock, sizeof(uint16_t) * held.count)) return k;
  if (set_count == SETS) { give_up("too many locks at a time"); return 0; }
  sets[set_count] = held;
  return set_count++;
}
static uint16_t with(uint16_t set, int lock) {
  Held held = sets[set];
  if (held.count == HELD) { give_up("too many locks at a time"); return set; }
  held.lock[held.count++] = lock;
  return set_of(held);
}
static uint16_t without(uint16_t set, int lock) {
  Held held = sets[set];
  int kept = 0;
  for (int k = 0; k < held.count; ++k)
    if (held.lock[k] != lock) held.lock[kept++] = held.lock[k];
  held.count = kept;
  return set_of(held);
}
// Two uses under one lock: the later one comes after what the lock's holder had done.
static bool common_lock(Thread* t, uint16_t other) {
  bool found = false;
  const Held &mine = sets[t->locks], &theirs = sets[other];
  for (int k = 0; k < mine.count; ++k)
    for (int j = 0; j < theirs.count; ++j)
      if (mine.lock[k] == theirs.lock[j]) {
        t->clock.join(locks[mine.lock[k]].released, thread_count);
        found = true;
      }
  return found;
}

// --- what is a race ------------------------------------------------------------------------------

// A plain read of what others change atomically is none where the reader goes on with an atomic
// operation on it (`while (v > *p) compare_and_swap`); until the region ends that is not known.
constexpr int DOUBTS = 64;
static Race doubts[DOUBTS];
static int doubt_count, trusted_count;
static uint32_t trusted[DOUBTS];

static bool same(const Race& a, const Race& b) { return a.pc == b.pc && a.other == b.other; }
static void found(const Race& race) {
  for (int k = 0; k < race_count; ++k)
    if (same(races[k], race)) return;
  if (race_count < RACES) races[race_count++] = race;
}
static void doubt(const Race& race) {
  for (int k = 0; k < doubt_count; ++k)
    if (same(doubts[k], race)) return;
  if (doubt_count < DOUBTS) doubts[doubt_count++] = race;
}
static void trust(uint32_t pc) {
  for (int k = 0; k < trusted_count; ++k)
    if (trusted[k] == pc) return;
  if (trusted_count < DOUBTS) trusted[trusted_count++] = pc;
}
static void end_doubts() {
  for (int k = 0; k < doubt_count && trusted_count < DOUBTS; ++k) {
    const uint32_t reader = doubts[k].kind & WRITE ? doubts[k].other : doubts[k].pc;
    bool fine = false;
    for (int j = 0; j < trusted_count; ++j) fine |= trusted[j] == reader;
    if (!fine) found(doubts[k]);
  }
  doubt_count = trusted_count = 0;
}
static uint64_t hash(const void* memory, size_t size) {
  uint64_t value = 1469598103934665603ull;
  for (size_t k = 0; k < size; ++k) value = (value ^ ((const unsigned char*)memory)[k]) * 1099511628211ull;
  return value;
}
struct Access { const void* at; size_t size; uint32_t pc; uint8_t kind; };

static void conflict(Thread* t, const Slot& slot, const Access& a) {
  const uint8_t both = slot.kind & a.kind, either = slot.kind | a.kind;
  if (both & ATOMIC) return;
  if (both & VOLATILE && !(both & WRITE)) return;  // one thread tells, others wait for it
  if (common_lock(t, slot.locks)) return;
  const Race race = {a.pc, slot.pc, a.kind, slot.kind, a.at};
  if (either & ATOMIC && !(both & WRITE) && !((slot.kind & WRITE ? a.kind : slot.kind) & ATOMIC)) return doubt(race);
  if (!(a.kind & WRITE) || a.kind & ATOMIC) return found(race);
  if (t->pends) return;
  t->pends = true;
  t->pending = race;
  t->pending_size = a.size;
  t->pending_hash = hash(a.at, a.size);
}
static inline void look(Thread* t, Cell& cell, const Access& a) {
  const auto unordered = [t](const Slot& s) { return s.clk > t->clock.at[s.tid]; };
  const Slot mine = {t->clock.at[t->tid], a.pc, (uint8_t)t->tid, a.kind, t->locks};
  if (unordered(cell.write)) conflict(t, cell.write, a);
  if (a.kind & WRITE) {
    if (unordered(cell.read)) conflict(t, cell.read, a);
    if (unordered(cell.other)) conflict(t, cell.other, a);
    if (a.kind & ATOMIC)
      for (const Slot* s : {&cell.read, &cell.other})
        if (s->tid == t->tid && s->clk == mine.clk && !(s->kind & ATOMIC)) trust(s->pc);
    cell.write = mine;
    return;
  }
  if (cell.read.clk && cell.read.tid != t->tid) cell.other = cell.read;
  cell.read = mine;
}
static void touch(Thread* t, const Access& a) {
  const uintptr_t from = (uintptr_t)a.at, end = from + a.size;
  for (uintptr_t at = from; at < end;) {
    uintptr_t* page = page_at(at, true);
    if (!page) return;
    const uintptr_t next = ((at >> PAGE) + 1) << PAGE, stop = next < end ? next : end;
    if (!(*page & BYTES) && ((at | stop) & 3) && !split(page)) return;
    const int shift = *page & BYTES ? 0 : 2;
    Cell* cells = (Cell*)(*page & ~BYTES);
    const uintptr_t mask = (1 << PAGE) - 1;
    for (size_t k = (at & mask) >> shift, last = ((stop - 1) & mask) >> shift; k <= last; ++k) look(t, cells[k], a);
    at = stop;
  }
}
// What was about to happen has happened by now: a write that changed nothing is no race, and what
// was loaded atomically and is something else now was changed atomically.
static inline void settle(Thread* t) {
  if (t->pends) {
    t->pends = false;
    if (hash(t->pending.at, t->pending_size) != t->pending_hash) found(t->pending);
  }
  if (t->loads) {
    t->loads = false;
    uint64_t now = 0;
    memcpy(&now, t->loaded, t->loaded_size);
    if (now != t->loaded_value && watching) touch(t, Access{t->loaded, t->loaded_size, t->loaded_pc, ATOMIC | WRITE});
  }
}
}  // namespace kf
