"""Kernels whose threads race, and kernels whose threads do not, by the risk that each stands for.

Each is the body of `extern "C" void NAME(const float* x, float* y, long n)`, with 512 elements.
"""

HEADER = """
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <atomic>
#include <mutex>
#include <vector>
static float mine;
#pragma omp threadprivate(mine)
"""
RACING = {
    "shared_scratch": """
  static float s[4];
  #pragma omp parallel for
  for (long i = 0; i < n; ++i) { for (int j = 0; j < 4; ++j) s[j] = x[i] + j; y[i] = s[i % 4]; }""",
    "volatile_sum": """
  static volatile float s;
  #pragma omp parallel for
  for (long i = 0; i < n; ++i) { s = 0; s += x[i]; y[i] = s; }""",
    "no_reduction": """
  float s = 0;
  #pragma omp parallel for
  for (long i = 0; i < n; ++i) s += x[i];
  y[0] = s;""",
    "no_barrier": """
  #pragma omp parallel
  {
    #pragma omp for nowait
    for (long i = 0; i < n; ++i) y[i] = x[i];
    #pragma omp for
    for (long i = 0; i < n; ++i) y[i] += y[n - 1 - i];
  }""",
    "histogram": """
  int h[16] = {0};
  #pragma omp parallel for
  for (long i = 0; i < n; ++i) h[(int)(x[i] * 16)]++;
  for (int i = 0; i < 16; ++i) y[i] = h[i];""",
    "critical_of_two_names": """
  float s = 0;
  #pragma omp parallel
  {
    float l = 0;
    #pragma omp for nowait
    for (long i = 0; i < n; ++i) l += x[i];
    if (omp_get_thread_num()) {
      #pragma omp critical(a)
      s += l;
    } else {
      #pragma omp critical(b)
      s += l;
    }
  }
  y[0] = s;""",
    "loop_variable": """
  long j;
  #pragma omp parallel for
  for (long i = 0; i < n / 8; ++i) { for (j = 0; j < 8; ++j) y[i * 8 + j] = x[i * 8 + j]; }""",
    "neighbour": """
  #pragma omp parallel for
  for (long i = 0; i < n - 1; ++i) { y[i] += x[i]; y[i + 1] += x[i]; }""",
    "single_nowait": """
  static float m;
  #pragma omp parallel
  {
    #pragma omp single nowait
    m = x[0] + n;
    #pragma omp for
    for (long i = 0; i < n; ++i) y[i] = x[i] * m;
  }""",
    "master_is_no_barrier": """
  float m = 0;
  #pragma omp parallel
  {
    #pragma omp master
    m = x[0];
    #pragma omp for
    for (long i = 0; i < n; ++i) y[i] = x[i] * m;
  }""",
    "tasks": """
  float s = 0;
  #pragma omp parallel
  #pragma omp single
  for (long i = 0; i < 8; ++i)
    #pragma omp task shared(s) firstprivate(i)
    s += x[i];
  y[0] = s;""",
    "atomic_then_read": """
  static float s;
  s = 0;
  #pragma omp parallel
  {
    #pragma omp for nowait
    for (long i = 0; i < n; ++i) {
      #pragma omp atomic
      s += x[i];
    }
    #pragma omp for
    for (long i = 0; i < n; ++i) y[i] = x[i] / s;
  }""",
    "read_outside_the_lock": """
  static float s;
  omp_lock_t l;
  omp_init_lock(&l);
  #pragma omp parallel for schedule(dynamic)
  for (long i = 0; i < n; ++i) { omp_set_lock(&l); s += x[i]; omp_unset_lock(&l); y[i] = s; }""",
    "bytes": """
  static unsigned char b[64];
  #pragma omp parallel for
  for (long i = 0; i < n; ++i) b[i % 64] ^= (unsigned char)(x[i] * 255);
  y[0] = b[3];""",
    "copied_by_libc": """
  static float b[64];
  #pragma omp parallel for
  for (long i = 0; i < n / 64; ++i) {
    memcpy(b, x + i * 64, 256);
    for (int j = 0; j < 64; ++j) y[i * 64 + j] = b[63 - j];
  }""",
    "shared_vector": """
  std::vector<float> b(64);
  #pragma omp parallel for
  for (long i = 0; i < n / 64; ++i) {
    for (int j = 0; j < 64; ++j) b[j] = x[i * 64 + j];
    for (int j = 0; j < 64; ++j) y[i * 64 + j] = b[63 - j];
  }""",
    "atomic_in_one_of_two_places": """
  static float s;
  #pragma omp parallel for
  for (long i = 0; i < n; ++i) {
    if (i % 2) {
      #pragma omp atomic
      s += x[i];
    } else s += x[i];
  }
  y[0] = s;""",
    "nested_teams": """
  omp_set_max_active_levels(2);
  float s = 0;
  #pragma omp parallel num_threads(2)
  {
    #pragma omp parallel for num_threads(2)
    for (long i = 0; i < n; ++i) s += x[i];
  }
  omp_set_max_active_levels(1);
  y[0] = s;""",
    "sections": """
  #pragma omp parallel sections
  {
    #pragma omp section
    for (long i = 0; i < n; ++i) y[i] = x[i];
    #pragma omp section
    for (long i = n / 2; i < n; ++i) y[i] = 2 * x[i];
  }""",
}
HONEST = {
    "reduction": """
  float s = 0, m = 0;
  #pragma omp parallel for reduction(+ : s) reduction(max : m)
  for (long i = 0; i < n; ++i) { s += x[i]; m = fmaxf(m, x[i]); }
  y[0] = s + m;""",
    "reduction_of_an_array": """
  float h[16] = {0};
  #pragma omp parallel for reduction(+ : h[:16])
  for (long i = 0; i < n; ++i) h[(int)(x[i] * 16)] += 1;
  for (int i = 0; i < 16; ++i) y[i] = h[i];""",
    "critical": """
  float s = 0;
  #pragma omp parallel
  {
    float l = 0;
    #pragma omp for nowait
    for (long i = 0; i < n; ++i) l += x[i];
    #pragma omp critical
    s += l;
  }
  y[0] = s;""",
    "atomic": """
  float s = 0;
  int c = 0;
  #pragma omp parallel for schedule(dynamic, 3)
  for (long i = 0; i < n; ++i) {
    #pragma omp atomic
    s += x[i];
    #pragma omp atomic
    c++;
  }
  y[0] = s + c;""",
    "lock": """
  float s = 0;
  omp_lock_t l;
  omp_init_lock(&l);
  #pragma omp parallel for schedule(guided)
  for (long i = 0; i < n; ++i) { omp_set_lock(&l); s += x[i]; omp_unset_lock(&l); }
  y[0] = s;""",
    "mutex": """
  static std::mutex m;
  float s = 0;
  #pragma omp parallel for
  for (long i = 0; i < n; ++i) { std::lock_guard<std::mutex> g(m); s += x[i]; }
  y[0] = s;""",
    "nested": """
  omp_set_max_active_levels(2);
  #pragma omp parallel num_threads(2)
  {
    long b = omp_get_thread_num() * n / 2;
    float l = 0;
    #pragma omp parallel for num_threads(2) reduction(+ : l)
    for (long i = 0; i < n / 2; ++i) { y[b + i] = x[b + i]; l += x[b + i]; }
    y[b] = l;
  }
  omp_set_max_active_levels(1);""",
    "tasks": """
  #pragma omp parallel
  #pragma omp single
  {
    float p[8];
    for (long i = 0; i < 8; ++i)
      #pragma omp task shared(p) firstprivate(i)
      p[i] = x[i];
    #pragma omp taskwait
    for (int i = 0; i < 8; ++i) y[i] = p[i];
  }""",
    "task_group": """
  #pragma omp parallel
  #pragma omp single
  {
    #pragma omp taskgroup
    for (long i = 0; i < 8; ++i)
      #pragma omp task
      {
        #pragma omp task
        y[i] = x[i];
      }
    for (int i = 0; i < 8; ++i) y[i] *= 2;
  }""",
    "task_loop": """
  #pragma omp parallel
  #pragma omp single
  #pragma omp taskloop
  for (long i = 0; i < n; ++i) y[i] = x[i];""",
    "tasks_that_depend": """
  #pragma omp parallel
  #pragma omp single
  {
    float s = 0;
    for (long i = 0; i < 8; ++i)
      #pragma omp task depend(inout : s) shared(s)
      s += x[i];
    #pragma omp taskwait
    y[0] = s;
  }""",
    "buffer_of_each_thread": """
  float* b = (float*)malloc(omp_get_max_threads() * 256);
  #pragma omp parallel
  {
    float* m = b + 64 * omp_get_thread_num();
    #pragma omp for
    for (long i = 0; i < n / 64; ++i) {
      memcpy(m, x + i * 64, 256);
      for (int j = 0; j < 64; ++j) y[i * 64 + j] = m[63 - j];
    }
  }
  free(b);""",
    "threadprivate": """
  #pragma omp parallel for
  for (long i = 0; i < n; ++i) { mine = x[i]; y[i] = mine * 2; }""",
    "thread_local_variable": """
  static thread_local float s;
  #pragma omp parallel for
  for (long i = 0; i < n; ++i) { s = 0; s += x[i]; y[i] = s; }""",
    "barriers_between_phases": """
  static float m;
  #pragma omp parallel
  {
    #pragma omp for
    for (long i = 0; i < n; ++i) y[i] = x[i];
    #pragma omp single
    m = y[0];
    #pragma omp for
    for (long i = 0; i < n; ++i) y[i] *= m;
    #pragma omp barrier
    #pragma omp master
    y[0] = m;
  }""",
    "simd": """
  #pragma omp parallel for simd
  for (long i = 0; i < n; ++i) y[i] = x[i] * 2;""",
    "false_sharing": """
  static unsigned char b[64];
  #pragma omp parallel for schedule(static, 1)
  for (long i = 0; i < 64; ++i) b[i] = (unsigned char)(x[i] * 255);
  y[0] = b[3];""",
    "memory_given_back": """
  #pragma omp parallel for schedule(dynamic)
  for (long i = 0; i < n / 64; ++i) {
    std::vector<float> b(64);
    float* c = (float*)malloc(256);
    float v[n / 8];
    for (int j = 0; j < 64; ++j) v[j] = c[j] = b[j] = x[i * 64 + j];
    for (int j = 0; j < 64; ++j) y[i * 64 + j] = v[j] + c[j] + b[63 - j];
    free(c);
  }""",
    "compare_and_swap": """
  std::atomic<int> next{0};
  std::atomic<float> s{0};
  #pragma omp parallel
  {
    long i;
    while ((i = next.fetch_add(1, std::memory_order_relaxed)) < n) {
      y[i] = x[i];
      float o = s.load();
      while (!s.compare_exchange_weak(o, o + x[i])) {}
    }
  }
  y[0] = s;""",
    "flags_between_threads": """
  std::vector<std::atomic<int>> f(n / 64);
  for (auto& a : f) a = 0;
  static float p[64];
  #pragma omp parallel for schedule(static, 1)
  for (long i = 0; i < n / 64; ++i) {
    float s = 0;
    for (int j = 0; j < 64; ++j) s += x[i * 64 + j];
    if (i) while (!f[i - 1].load(std::memory_order_acquire)) {}
    p[i] = s + (i ? p[i - 1] : 0);
    f[i].store(1, std::memory_order_release);
  }
  y[0] = p[n / 64 - 1];""",
    "flags_and_flush": """
  static int f[64];
  static float p[64];
  memset(f, 0, sizeof f);
  #pragma omp parallel for schedule(static, 1)
  for (long i = 0; i < n / 64; ++i) {
    float s = 0;
    for (int j = 0; j < 64; ++j) s += x[i * 64 + j];
    int g = !i;
    while (!g) {
      #pragma omp atomic read
      g = f[i - 1];
    }
    #pragma omp flush
    p[i] = s + (i ? p[i - 1] : 0);
    #pragma omp flush
    #pragma omp atomic write
    f[i] = 1;
  }
  y[0] = p[n / 64 - 1];""",
    "flags_without_flush": """
  static int f[64];
  static float p[64];
  memset(f, 0, sizeof f);
  #pragma omp parallel for schedule(static, 1)
  for (long i = 0; i < n / 64; ++i) {
    int g = !i;
    while (!g) {
      #pragma omp atomic read
      g = f[i - 1];
    }
    p[i] = x[i] + (i ? p[i - 1] : 0);
    #pragma omp atomic write
    f[i] = 1;
  }
  y[0] = p[n / 64 - 1];""",
    "volatile_flag": """
  static volatile int ready;
  static float value;
  ready = 0;
  #pragma omp parallel num_threads(2)
  {
    if (omp_get_thread_num()) {
      while (!ready) {}
      y[0] = value;
    } else {
      value = x[0];
      ready = 1;
    }
  }""",
    "the_last_one_adds_up": """
  static int done;
  static float p[64];
  done = 0;
  #pragma omp parallel
  {
    int t = omp_get_thread_num(), all = omp_get_num_threads(), d;
    float s = 0;
    for (long i = t; i < n; i += all) s += x[i];
    p[t] = s;
    #pragma omp atomic capture
    d = ++done;
    if (d == all) for (int k = 0; k < all; ++k) y[0] += p[k];
  }""",
    "ordered": """
  float s = 0;
  #pragma omp parallel for ordered schedule(dynamic)
  for (long i = 0; i < n; ++i) {
    float v = x[i] * 2;
    #pragma omp ordered
    { s += v; y[i] = s; }
  }""",
    "sections": """
  #pragma omp parallel sections
  {
    #pragma omp section
    for (long i = 0; i < n / 2; ++i) y[i] = x[i];
    #pragma omp section
    for (long i = n / 2; i < n; ++i) y[i] = x[i];
  }""",
    "static_made_once": """
  #pragma omp parallel for
  for (long i = 0; i < n; ++i) {
    static std::vector<float> t = [] { std::vector<float> v(64, 2.0f); return v; }();
    y[i] = t[i % 64];
  }""",
    "same_flag_from_all": """
  static bool any;
  any = false;
  #pragma omp parallel for
  for (long i = 0; i < n; ++i) if (x[i] > 0.5f) any = true;
  y[0] = any;""",
    "read_before_compare_and_swap": """
  static int m;
  m = 0;
  #pragma omp parallel for
  for (long i = 0; i < n; ++i) {
    int v = (int)(x[i] * 1000), o = m;
    while (v > o && !__atomic_compare_exchange_n(&m, &o, v, false, 0, 0)) {}
  }
  y[0] = m;""",
    "handed_over_in_critical": """
  float buffer = 0;
  int ready = 0;
  #pragma omp parallel num_threads(2)
  {
    if (omp_get_thread_num() == 0) {
      buffer = x[0];
      #pragma omp critical
      ready = 1;
    } else {
      int r = 0;
      while (!r) {
        #pragma omp critical
        r = ready;
      }
      y[0] = buffer;
    }
  }""",
    "collapse": """
  #pragma omp parallel for collapse(2) schedule(dynamic, 2)
  for (long i = 0; i < n / 8; ++i)
    for (long j = 0; j < 8; ++j) y[i * 8 + j] = x[i * 8 + j];""",
    "copyprivate": """
  #pragma omp parallel
  {
    float m;
    #pragma omp single copyprivate(m)
    m = x[0];
    #pragma omp for
    for (long i = 0; i < n; ++i) y[i] = x[i] * m;
  }""",
    "lastprivate": """
  float l;
  #pragma omp parallel for lastprivate(l)
  for (long i = 0; i < n; ++i) { l = x[i]; y[i] = l; }
  y[0] = l;""",
    "unsigned_downwards": """
  #pragma omp parallel for schedule(dynamic, 5)
  for (unsigned long i = n; i > 0; --i) y[i - 1] = x[i - 1];""",
    "many_regions": """
  for (int r = 0; r < 50; ++r) {
    #pragma omp parallel for
    for (long i = 0; i < n; ++i) y[i] += x[i];
  }""",
    "one_thread_asked_for": """
  float s = 0;
  #pragma omp parallel for num_threads(1)
  for (long i = 0; i < n; ++i) s += x[i];
  y[0] = s;""",
}


def source(bodies: dict[str, str]) -> str:
    """All of them in one kernel source."""
    signature = 'extern "C" void {}(const float* x, float* y, long n) {{{}\n}}\n'
    return HEADER + "".join(signature.format(name, body) for name, body in bodies.items())
