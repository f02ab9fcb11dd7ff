// The threads of a block as fibers on one processor core: what a kernel computes, never how fast.
// Compiled twice in front of a kernel: checked (KF_CHECKED, with -fsanitize=thread, whose calls are
// answered here: every read and write is seen) and plain. Lines are the kernel's own.
#pragma once
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <type_traits>
#include <utility>

#define KF_RT __attribute__((no_sanitize_thread))
#define KF_COLD KF_RT __attribute__((noinline, cold))

struct uint3 { unsigned x, y, z; };
struct dim3 {
  unsigned x, y, z;
  KF_RT constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};

namespace kf {
constexpr int MAX_THREADS = 1024, MAX_REGIONS = 96;
constexpr size_t STACK = 128 << 10;
enum State { READY, AT_BARRIER, AT_WARP, DONE };

struct Fiber {
  void* sp;
  char* stack;
  uint3 tid;
  int index, warp, lane, state, line, last_line;
  unsigned warp_step, mask;
  unsigned active;  // the lanes that came along, where a meeting is of whoever is there
  int fence;        // what its barrier orders: 1 shared memory, 2 device memory
};
struct Region {  // memory that the kernel may touch
  char* base;
  size_t size;
  size_t grain;
  bool shared, known;   // known: written in this block (shared memory is poisoned first)
  int argument;
  struct Cell* cells;
};
struct Cell {  // who touched these bytes last
  int writer, write_line, reader, other, read_line, write_block, read_block;
  unsigned write_step, write_warp_step, read_step, read_warp_step;
  short reader_warp;
  bool many, atomic;
};
struct Launch {  // what Python hands over; sizes in bytes
  unsigned grid[3], block[3];
  unsigned long shared;
  int order, warp, count;
  void** base;
  unsigned long* size;
  unsigned long* grain;
  const unsigned* offsets;
  const unsigned* lines;
  int rows;
  char* report;
  unsigned long limit;
};

static Fiber fibers[MAX_THREADS];
static Fiber* self;
static void* scheduler;
static const Launch* now;
static Region regions[MAX_REGIONS];
static int region_count, thread_count, block_number, failed;
static bool held;  // a race in shared memory is on report: a barrier that only some come to may explain it
static unsigned late;  // accesses since: what waits for another thread would wait for ever
static unsigned steps[2], fences;  // of device memory and of shared memory
static unsigned long shared_limit = 232448;
static int pinned_line;  // of a word that is no plain access; 0 for the access's own
static uint3 block_index;
static dim3 block_size, grid_size;
static void (*entry)(void*);
static void* entry_argument;
static char* dynamic_shared;
static unsigned long static_shared;
static unsigned long long warp_slots[MAX_THREADS][2];

extern "C" void kf_switch_here(void** from, void* to);
#if defined(__x86_64__)
asm(R"(
.text
.local kf_switch_here
.type kf_switch_here, @function
kf_switch_here:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size kf_switch_here, .-kf_switch_here
)");
constexpr int SAVED = 6;
#elif defined(__aarch64__)
asm(R"(
.text
.local kf_switch_here
.type kf_switch_here, @function
kf_switch_here:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size kf_switch_here, .-kf_switch_here
)");
constexpr int SAVED = 20;
#else
#error "the emulator knows the stacks of x86-64 and aarch64 only"
#endif

KF_RT static inline void yield() { kf_switch_here(&self->sp, scheduler); }

// --- reports -------------------------------------------------------------------------------------

KF_COLD static int line_of(const void* pc);
KF_COLD static void leave() {  // never comes back into this launch
  failed = 1;
  if (self) yield();
}
template <typename... A> KF_COLD static void fail(const char* format, A... values) {
  if (failed) return leave();
  if (!held) std::snprintf(now->report, now->limit, format, values...);
  leave();
}
// Reports a race in shared memory and goes on to the next barrier; the first one stays.
template <typename... A> KF_COLD static void hold(const char* format, A... values) {
  if (held) return;
  std::snprintf(now->report, now->limit, format, values...);
  held = true;
  late = 0;
}

// --- memory --------------------------------------------------------------------------------------

KF_RT static Region* region_at(const char* at) {
  for (int k = region_count - 1; k >= 0; --k)
    if (at >= regions[k].base && at < regions[k].base + regions[k].size) return &regions[k];
  return nullptr;
}
KF_COLD static Region* add_region(char* base, size_t size, size_t grain, bool shared, int argument) {
  if (region_count == MAX_REGIONS) { fail("more than %d arrays in shared memory", MAX_REGIONS); return nullptr; }
  Region* r = &regions[region_count++];
  *r = Region{base, size, grain < 1 ? 1 : grain, shared, false, argument, nullptr};
#ifdef KF_CHECKED
  const size_t bytes = (size / r->grain + 1) * sizeof(Cell);
  r->cells = (Cell*)mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
#endif
  return r;
}
KF_COLD static void drop_regions() {
#ifdef KF_CHECKED
  for (int k = 0; k < region_count; ++k)
    munmap(regions[k].cells, (regions[k].size / regions[k].grain + 1) * sizeof(Cell));
#endif
  region_count = 0;
}
// Shared memory begins each block as NaN: what another block left there is never an answer.
KF_RT static inline void poison(Region* r) { std::memset(r->base, 0xff, r->size); r->known = true; }
// An array in shared memory: the same for all threads of a block, with unowned bytes around it.
KF_RT static void* shared_array(void** memory, size_t size, size_t grain) {
  if (!*memory) *memory = (char*)std::aligned_alloc(128, (size + 383) / 128 * 128) + 128;
  for (int k = 0; k < region_count; ++k)
    if (regions[k].base == *memory) { if (!regions[k].known) poison(&regions[k]); return *memory; }
  Region* r = add_region((char*)*memory, size, grain, true, -1);
  if (!r) return *memory;
  static_shared += size;
  if (static_shared + now->shared > shared_limit)
    fail("%lu bytes of shared memory in a block; no device has more than %lu", static_shared + now->shared, shared_limit);
  poison(r);
  return *memory;
}

// --- scheduling ----------------------------------------------------------------------------------

KF_COLD static void first() {
  entry(entry_argument);
  self->state = DONE;
  yield();
  std::abort();
}
KF_RT static void prepare(Fiber* f) {
  if (!f->stack) {
    f->stack = (char*)mmap(nullptr, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (f->stack == MAP_FAILED) std::abort();
  }
  void** top = (void**)(f->stack + STACK) - 2;
#if defined(__x86_64__)
  ++top;  // a function begins 8 bytes off a multiple of 16
  *--top = (void*)first;
  for (int k = 0; k < SAVED; ++k) *--top = nullptr;
#else
  top -= SAVED;
  std::memset(top, 0, SAVED * sizeof(void*));
  top[11] = (void*)first;
#endif
  f->sp = top;
}
KF_COLD static void diverged(int waiting, int line) {
  int elsewhere = 0, other = 0, done = 0;
  char before[256] = "";
  if (held) std::snprintf(before, sizeof before, "; before it %s", now->report);
  held = false;
  for (int k = 0; k < thread_count; ++k) {
    const Fiber& f = fibers[k];
    done += f.state == DONE;
    if (f.state == AT_BARRIER && f.line != line) { ++elsewhere; other = f.line; }
    if (f.state == AT_WARP) { ++elsewhere; other = f.line; }
  }
  if (elsewhere)
    fail("line %d: divergent barrier: %d of %d threads wait here, %d wait at line %d%s", line, waiting, thread_count, elsewhere, other, before);
  else
    fail("line %d: divergent barrier: %d of %d threads wait here, %d went past it and returned%s", line, waiting, thread_count, done, before);
}
// Whether the threads at barriers may go on: all that have not returned wait at the same line.
// Whoever returned before the line (an early return) does not count, as on the devices.
KF_RT static bool release() {
  int waiting = 0, line = 0, alive = 0, skipped = 0;
  for (int k = 0; k < thread_count; ++k) {
    const Fiber& f = fibers[k];
    if (f.state == DONE) continue;
    ++alive;
    if (f.state == AT_BARRIER) { if (!waiting) line = f.line; waiting += f.line == line; }
  }
  if (!alive) return false;
  for (int k = 0; k < thread_count; ++k)
    skipped += fibers[k].state == DONE && fibers[k].last_line > line;
  if (waiting != alive || skipped) { diverged(waiting, line); return false; }
  if (held) return false;
  int fence = 3;
  for (int k = 0; k < thread_count; ++k) {
    if (fibers[k].state != AT_BARRIER) continue;
    fibers[k].state = READY;
    fence &= fibers[k].fence;
  }
  steps[1] += fence & 1;
  steps[0] += fence >> 1;
  return true;
}
// Lanes of a warp go on together once all in the mask that have not returned have come.
KF_RT static bool release_warps() {
  bool any = false;
  for (int w = 0; w * now->warp < thread_count; ++w) {
    const int begin = w * now->warp;
    const int end = begin + now->warp < thread_count ? begin + now->warp : thread_count;
    for (int k = begin; k < end; ++k) {
      if (fibers[k].state != AT_WARP || !fibers[k].mask) continue;
      const unsigned mask = fibers[k].mask;
      bool all = true;
      for (int j = begin; j < end; ++j) {
        const bool named = now->warp > 32 || (mask >> (j - begin) & 1);
        if (named && fibers[j].state != DONE) all &= fibers[j].state == AT_WARP && fibers[j].mask == mask;
      }
      if (!all) continue;
      for (int j = begin; j < end; ++j)
        if (fibers[j].state == AT_WARP && fibers[j].mask == mask) { fibers[j].state = READY; ++fibers[j].warp_step; }
      any = true;
    }
  }
  return any;
}
// Where a warp function is of whoever is there (mask 0): once nobody can go on, the lanes that wait at
// the smallest line go together. That is where a branch or a loop has not come back to the others.
KF_RT static bool release_active() {
  bool any = false;
  for (int begin = 0; begin < thread_count; begin += now->warp) {
    const int end = begin + now->warp < thread_count ? begin + now->warp : thread_count;
    int line = INT_MAX;
    unsigned active = 0;
    for (int k = begin; k < end; ++k)
      if (fibers[k].state == AT_WARP && !fibers[k].mask && fibers[k].line < line) line = fibers[k].line;
    for (int k = begin; k < end; ++k)
      if (fibers[k].state == AT_WARP && !fibers[k].mask && fibers[k].line == line) active |= 1u << (k - begin);
    for (int k = begin; k < end; ++k)
      if (active >> (k - begin) & 1) { fibers[k].state = READY; fibers[k].active = active; any = true; }
  }
  return any;
}
KF_RT static unsigned random_below(unsigned n) {
  static unsigned long long state = 0x9e3779b97f4a7c15ull;
  state = state * 6364136223846793005ull + 1442695040888963407ull;
  return (unsigned)((state >> 33) % n);
}
KF_RT static void run_block() {
  static int turn[MAX_THREADS];
  for (int k = 0; k < thread_count; ++k) {
    Fiber& f = fibers[k];
    const unsigned x = k % block_size.x, y = k / block_size.x % block_size.y;
    f.tid = uint3{x, y, k / block_size.x / block_size.y};
    f.index = k; f.warp = k / now->warp; f.lane = k % now->warp;
    f.state = READY; f.warp_step = 0; f.line = f.last_line = 0;
    turn[k] = now->order == 1 ? thread_count - 1 - k : k;
    prepare(&f);
  }
  if (now->order > 1)
    for (int k = thread_count - 1; k > 0; --k) {
      const int j = (int)random_below(k + 1), t = turn[k];
      turn[k] = turn[j]; turn[j] = t;
    }
  for (;;) {
    bool ran = false;
    for (int k = 0; k < thread_count; ++k) {
      Fiber& f = fibers[turn[k]];
      if (f.state != READY) continue;
      ran = true;
      self = &f;
      kf_switch_here(&scheduler, f.sp);
      self = nullptr;
      if (failed) return;
    }
    if (ran) continue;
    if (release_warps() || release_active()) continue;
    bool alive = false;
    for (int k = 0; k < thread_count; ++k) alive |= fibers[k].state != DONE;
    if (!alive || !release()) return;
  }
}
KF_RT static void barrier(int line, int fence = 3) {
  self->fence = fence;
  self->state = AT_BARRIER;
  self->line = self->last_line = line;
  yield();
}
KF_RT static void warp_barrier(unsigned mask, int line) {
  if (now->warp <= 32 && !(mask >> self->lane & 1))
    return fail("line %d: lane %d calls a warp function whose mask 0x%x leaves it out", line, self->lane, mask);
  self->state = AT_WARP;
  self->line = self->last_line = line;
  self->mask = now->warp > 32 ? ~0u : mask;
  yield();
}
// Every lane's value, seen by all lanes of the mask.
template <typename T> KF_RT static T exchange(unsigned mask, T value, int lane, int line) {
  static_assert(sizeof(T) <= 16, "a shuffled value has at most 16 bytes");
  const int begin = self->warp * now->warp;
  std::memcpy(warp_slots[self->index], &value, sizeof(T));
  warp_barrier(mask, line);
  T result = value;
  const int from = begin + lane;
  if (lane >= 0 && lane < now->warp && from < thread_count && fibers[from].state != DONE)
    std::memcpy(&result, warp_slots[from], sizeof(T));
  warp_barrier(mask, line);
  return result;
}
KF_RT static unsigned long long votes(unsigned mask, bool yes, int line) {
  const int begin = self->warp * now->warp;
  warp_slots[self->index][0] = yes;
  warp_barrier(mask, line);
  unsigned long long found = 0;
  for (int k = 0; k < now->warp && begin + k < thread_count; ++k)
    if (fibers[begin + k].state != DONE && (now->warp > 32 || (mask >> k & 1)))
      found |= (unsigned long long)(warp_slots[begin + k][0] & 1) << k;
  warp_barrier(mask, line);
  return found;
}

// --- what the checked build sees -----------------------------------------------------------------

#ifdef KF_CHECKED
extern "C" {
extern char __ehdr_start[] __attribute__((visibility("hidden")));
extern char _end[] __attribute__((visibility("hidden")));
}
static char* pending_at;  // a write over another thread's value: a race unless it is the same value
static size_t pending_size;
static char pending_value[16];
static int pending_lines[2], pending_threads[2];
static bool pending_shared;

KF_COLD static int line_of(const void* pc) {
  if (pinned_line) return pinned_line;
  const size_t offset = (const char*)pc - __ehdr_start - 1;
  int low = 0, high = now->rows - 1, found = 0;
  while (low <= high) {
    const int middle = (low + high) / 2;
    if (now->offsets[middle] <= offset) { found = now->lines[middle]; low = middle + 1; } else high = middle - 1;
  }
  return found;
}
KF_COLD static void race(const char* what, bool shared, int line, int other_line, int other) {
  int waiting = 0, at = 0;  // a barrier that this thread did not come to explains the race
  for (int k = 0; shared && k < thread_count; ++k)
    if (fibers[k].state == AT_BARRIER && fibers[k].line < line && (!waiting || fibers[k].line == at)) { ++waiting; at = fibers[k].line; }
  if (waiting && self->line != at)
    return fail("line %d: divergent barrier: %d of %d threads wait here, thread %d went past it to line %d", at, waiting, thread_count, self->index, line);
  const char* where = shared ? "shared memory" : "device memory";
  const char* format = "line %d: race in %s: thread %d %s what thread %d touched at line %d, with no barrier between them";
  if (shared) hold(format, line, where, self ? self->index : -1, what, other, other_line);
  else fail(format, line, where, self ? self->index : -1, what, other, other_line);
}
KF_RT static void settle() {
  if (!pending_at) return;
  char* at = pending_at;
  pending_at = nullptr;
  if (std::memcmp(at, pending_value, pending_size) == 0) return;
  const char* format = "line %d: race in %s: threads %d and %d write different values (the other at line %d), with no barrier between them";
  const char* where = pending_shared ? "shared memory" : "device memory";
  if (pending_shared) hold(format, pending_lines[0], where, pending_threads[0], pending_threads[1], pending_lines[1]);
  else fail(format, pending_lines[0], where, pending_threads[0], pending_threads[1], pending_lines[1]);
}
KF_COLD static void outside(const char* at, size_t size, bool write, const void* pc) {
  const char* verb = write ? "writes" : "reads";
  const int line = line_of(pc);
  const Region* near = nullptr;
  long best = LONG_MAX;
  for (int k = 0; k < region_count; ++k) {
    const Region& r = regions[k];
    const long far = at < r.base ? r.base - at : at - (r.base + r.size) + 1;
    if (far < best) { best = far; near = &r; }
  }
  if (!near || best > (1l << 32)) return fail("line %d: out of bounds: %s %lu bytes at no known address", line, verb, size);
  char name[40];
  if (near->shared) std::snprintf(name, sizeof name, "a shared array");
  else std::snprintf(name, sizeof name, "argument %d", near->argument + 1);
  fail("line %d: out of bounds: thread %d of block %d %s %lu bytes %ld bytes %s %s (%lu bytes)", line,
       self ? self->index : 0, block_number, verb, size, at < near->base ? best : best - 1,
       at < near->base ? "before" : "behind the end of", name, near->size);
}
KF_RT static inline bool ordered(unsigned step, int other_block, int other, unsigned other_step, unsigned other_warp_step) {
  if (other_block != block_number) return fences != 0;
  if (other_step != step) return true;
  return fibers[other].warp == self->warp && other_warp_step < self->warp_step;
}
KF_RT static void touch(const char* at, size_t size, bool write, const void* pc, bool atomic = false) {
  settle();
  if (failed) return;
  if (held && ++late > 1u << 22) return leave();
  if (self && at >= self->stack && at < self->stack + STACK) return;
  Region* r = region_at(at);
  if (!r || at + size > r->base + r->size) {
    if (!r && at >= __ehdr_start && at < _end) return;  // constants and device variables
    return outside(at, size, write, pc);
  }
  if (size <= 16 && !(size & (size - 1)) && ((size_t)at & (size - 1)))
    return fail("line %d: misaligned address: %lu bytes at an address that is not a multiple of %lu", line_of(pc), size, size);
  const int line = line_of(pc), me = self->index;
  const unsigned step = steps[r->shared];
  self->last_line = line;
  for (size_t byte = 0; byte < size; byte += r->grain) {
    Cell& c = r->cells[(at + byte - r->base) / r->grain];
    if (r->shared && c.write_block != block_number) c.write_line = 0;
    if (r->shared && c.read_block != block_number) c.read_line = 0;
    const bool wrote = c.write_line && !(c.write_block == block_number && c.writer == me);
    if (wrote && !(atomic && c.atomic) && !ordered(step, c.write_block, c.writer, c.write_step, c.write_warp_step)) {
      if (!write) return race("reads", r->shared, line, c.write_line, c.writer);
      if (atomic || size > 16) return race("writes", r->shared, line, c.write_line, c.writer);
      pending_at = (char*)at; pending_size = size; pending_shared = r->shared;
      std::memcpy(pending_value, at, size);
      pending_lines[0] = line; pending_lines[1] = c.write_line;
      pending_threads[0] = me; pending_threads[1] = c.writer;
    }
    if (write) {
      const bool theirs = c.read_line && (c.many || c.reader != me || c.read_block != block_number);
      bool apart = theirs && !ordered(step, c.read_block, c.reader, c.read_step, c.read_warp_step);
      if (theirs && c.many && c.reader_warp < 0 && c.read_block == block_number) apart = c.read_step == step;
      if (apart && !(atomic && c.atomic))
        return race("writes", r->shared, line, c.read_line, c.reader == me ? c.other : c.reader);
      c.writer = me; c.write_line = line; c.write_block = block_number;
      c.write_step = step; c.write_warp_step = self->warp_step; c.atomic = atomic;
    } else {
      const bool again = c.read_line && c.read_block == block_number && c.read_step == step;
      if (again && c.reader != me) c.other = c.reader;
      c.many = again && (c.many || c.reader != me);
      c.reader_warp = !again || c.reader_warp == self->warp ? (short)self->warp : (short)-1;
      c.reader = me; c.read_line = line; c.read_block = block_number;
      c.read_step = step; c.read_warp_step = self->warp_step;
    }
  }
}
KF_RT static void settle_at_end() { settle(); }
KF_RT __attribute__((noinline)) static void touch_atomic(const void* at, size_t size) {
  touch((const char*)at, size, true, __builtin_return_address(0), true);
}
#define KF_SEEN(N)                                                                                                     \
  KF_RT __attribute__((visibility("hidden"))) void __tsan_read##N(void* p) { touch((char*)p, N, false, __builtin_return_address(0)); }   \
  KF_RT __attribute__((visibility("hidden"))) void __tsan_write##N(void* p) { touch((char*)p, N, true, __builtin_return_address(0)); }   \
  KF_RT __attribute__((visibility("hidden"))) void __tsan_unaligned_read##N(void* p) { touch((char*)p, N, false, __builtin_return_address(0)); } \
  KF_RT __attribute__((visibility("hidden"))) void __tsan_unaligned_write##N(void* p) { touch((char*)p, N, true, __builtin_return_address(0)); }
extern "C" {
KF_SEEN(1) KF_SEEN(2) KF_SEEN(4) KF_SEEN(8) KF_SEEN(16)
KF_RT __attribute__((visibility("hidden"))) void __tsan_read_range(void* p, unsigned long n) { touch((char*)p, n, false, __builtin_return_address(0)); }
KF_RT __attribute__((visibility("hidden"))) void __tsan_write_range(void* p, unsigned long n) { touch((char*)p, n, true, __builtin_return_address(0)); }
KF_RT __attribute__((visibility("hidden"))) void __tsan_func_entry(void*) {}
KF_RT __attribute__((visibility("hidden"))) void __tsan_func_exit(void) {}
KF_RT __attribute__((visibility("hidden"))) void __tsan_init(void) {}
KF_RT __attribute__((visibility("hidden"))) void __tsan_vptr_update(void*, void*) {}
KF_RT __attribute__((visibility("hidden"))) void __tsan_vptr_read(void*) {}
// What -fsanitize=alignment,bounds,integer-divide-by-zero calls: the place comes with it.
struct Place { const char* file; unsigned line, column; };
struct Mismatch { Place place; void* type; unsigned char log_alignment, kind; };
KF_COLD __attribute__((visibility("hidden"))) void __ubsan_handle_type_mismatch_v1(Mismatch* m, void* at) {
  const unsigned long wanted = 1ul << m->log_alignment;
  if ((size_t)at & (wanted - 1))
    fail("line %u: misaligned address: this type wants a multiple of %lu bytes", m->place.line, wanted);
}
KF_COLD __attribute__((visibility("hidden"))) void __ubsan_handle_out_of_bounds(Place* p, long index) {
  fail("line %u: out of bounds: index %ld of an array", p->line, index);
}
KF_COLD __attribute__((visibility("hidden"))) void __ubsan_handle_divrem_overflow(Place* p, long, long) {
  fail("line %u: division by zero", p->line);
}
}
#else
KF_COLD static int line_of(const void*) { return 0; }
KF_RT static void settle_at_end() {}
KF_RT static void touch_atomic(const void*, size_t) {}
#endif

// --- a launch ------------------------------------------------------------------------------------

KF_RT static bool too_many(const Launch* launch, unsigned long most) {
  const unsigned long threads = (unsigned long)launch->block[0] * launch->block[1] * launch->block[2];
  if (threads > most)
    std::snprintf(launch->report, launch->limit, "a block of %lu threads; the kernel says that it takes at most %lu", threads, most);
  return threads > most;
}
KF_RT static int run(const Launch* launch, void (*call)(void*), void* argument) {
  now = launch;
  failed = 0; held = false; steps[0] = steps[1] = 1; fences = 0; static_shared = 0; pinned_line = 0;
  block_size = dim3(launch->block[0], launch->block[1], launch->block[2]);
  grid_size = dim3(launch->grid[0], launch->grid[1], launch->grid[2]);
  const unsigned long threads = (unsigned long)block_size.x * block_size.y * block_size.z;
  if (!threads || threads > MAX_THREADS) {
    std::snprintf(launch->report, launch->limit, "a block of %lu threads; 1 to %d are possible", threads, MAX_THREADS);
    return 1;
  }
  thread_count = (int)threads;
  for (int k = 0; k < launch->count; ++k)
    if (launch->size[k]) add_region((char*)launch->base[k], launch->size[k], launch->grain[k], false, k);
  dynamic_shared = nullptr;
  Region* dynamic = nullptr;
  if (launch->shared > shared_limit) {
    std::snprintf(launch->report, launch->limit, "%lu bytes of shared memory in a block; no device has more than %lu", launch->shared, shared_limit);
    drop_regions();
    return 1;
  }
  if (launch->shared) {
    dynamic_shared = (char*)std::aligned_alloc(128, (launch->shared + 127) / 128 * 128);
    dynamic = add_region(dynamic_shared, launch->shared, 4, true, -1);
  }
  entry = call;
  entry_argument = argument;
  block_number = 0;
  for (unsigned z = 0; z < grid_size.z && !failed; ++z)
    for (unsigned y = 0; y < grid_size.y && !failed; ++y)
      for (unsigned x = 0; x < grid_size.x && !failed; ++x, ++block_number) {
        block_index = uint3{x, y, z};
        for (int k = 0; k < region_count; ++k) regions[k].known = false;
        if (dynamic) poison(dynamic);
        run_block();
        settle_at_end();
        failed |= held;
        ++steps[0];
        ++steps[1];
      }
  drop_regions();
  std::free(dynamic_shared);
  return failed;
}
}  // namespace kf
