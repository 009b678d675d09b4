// CUDA on the CPU, for tests: one kernel body, run block by block. Threads take turns: each runs up to the
// next barrier, so what one reads before the others wrote it is wrong every time. With a sanitizer they are real
// threads, so a missing barrier is a data race that it sees.
#pragma once
#undef _FORTIFY_SOURCE  // it takes jumps between stacks for mistakes
#include <math.h>
#include <setjmp.h>
#include <string.h>
#include <ucontext.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#define __global__
#define __device__
#define __forceinline__ inline
#define __noinline__ inline
#define __shared__ static
#define __grid_constant__
#define __launch_bounds__(threads)

struct dim3 {
    unsigned x;
};
inline thread_local dim3 blockIdx, threadIdx, blockDim;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

// A barrier on two counters in turn. Waiting at one acquires what was released at that barrier and nothing
// of what a faster thread did behind it: with pthread_barrier_t a race detector misses most races.
inline std::atomic<unsigned> shim_arrived[2];
inline thread_local unsigned shim_barriers;

inline void __syncthreads() {
    std::atomic<unsigned>& arrived = shim_arrived[shim_barriers % 2];
    const unsigned uses = shim_barriers++ / 2 + 1;
    const unsigned all = uses * blockDim.x;
    arrived.fetch_add(1, std::memory_order_release);
    while (arrived.load(std::memory_order_acquire) < all) std::this_thread::yield();
}

// Of a larger block eight threads: more of them show no more races.
inline bool shim_together(unsigned blocks, unsigned threads, const std::function<void()>& kernel) {
    threads = threads < 8 ? threads : 8;
    const auto run = [&](unsigned thread) {
        threadIdx.x = thread;
        blockDim.x = threads;
        shim_barriers = 0;
        for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x) {
            kernel();
            __syncthreads();
        }
    };
    shim_arrived[0] = shim_arrived[1] = 0;
    std::vector<std::thread> team;
    for (unsigned thread = 0; thread < threads; ++thread) team.emplace_back(run, thread);
    for (std::thread& member : team) member.join();
    return true;
}

#else

// Contexts enter stacks, and jumps go on there: a change of context would call the operating system each time.
struct shim_thread {
    ucontext_t context;
    jmp_buf barrier;
    bool begun;
    std::unique_ptr<char[]> stack{new char[shim_thread::stack_bytes]};
    bool done;
    static constexpr size_t stack_bytes = 1 << 18;  // apart from the heap, which a deep kernel could reach
};
inline jmp_buf shim_scheduler;
inline std::vector<shim_thread> shim_team;
inline const std::function<void()>* shim_kernel;

inline void __syncthreads() {
    if (_setjmp(shim_team[threadIdx.x].barrier) == 0) _longjmp(shim_scheduler, 1);
}

inline void shim_start() {
    (*shim_kernel)();
    shim_team[threadIdx.x].done = true;
    _longjmp(shim_scheduler, 1);
}

// The turn of one thread: up to its next barrier, or to its end.
inline void shim_turn(shim_thread& one) {
    if (_setjmp(shim_scheduler) != 0) return;
    if (one.begun) _longjmp(one.barrier, 1);
    one.begun = true;
    setcontext(&one.context);
}

// One block; false if a barrier was reached by a part of its threads only.
inline bool shim_block(unsigned threads) {
    for (unsigned thread = 0; thread < threads; ++thread) {
        shim_thread& one = shim_team[thread];
        getcontext(&one.context);
        one.context.uc_stack.ss_sp = one.stack.get();
        one.context.uc_stack.ss_size = shim_thread::stack_bytes;
        one.context.uc_link = nullptr;
        one.begun = one.done = false;
        makecontext(&one.context, shim_start, 0);
    }
    for (unsigned finished = 0; finished == 0;) {
        for (threadIdx.x = 0; threadIdx.x < threads; ++threadIdx.x) {
            shim_turn(shim_team[threadIdx.x]);
            finished += shim_team[threadIdx.x].done;
        }
        if (finished != 0 && finished != threads) return false;
    }
    return true;
}

inline bool shim_together(unsigned blocks, unsigned threads, const std::function<void()>& kernel) {
    shim_kernel = &kernel;
    if (shim_team.size() < threads) shim_team.resize(threads);
    blockDim.x = threads;
    for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x)
        if (!shim_block(threads)) return false;
    return true;
}

#endif

// All threads of all blocks. `together`: those of a block wait for each other; else they run one by one.
// False if they waited for a thread that had left.
inline bool shim_launch(unsigned blocks, unsigned threads, bool together, const std::function<void()>& kernel) {
    if (together) return shim_together(blocks, threads, kernel);
    blockDim.x = threads;
    for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x)
        for (threadIdx.x = 0; threadIdx.x < threads; ++threadIdx.x) kernel();
    return true;
}

inline double __longlong_as_double(long long bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
inline float rsqrt(float x) { return 1 / sqrtf(x); }
inline double rsqrt(double x) { return 1 / sqrt(x); }

typedef _Float16 __half;
inline float __half2float(__half x) { return static_cast<float>(x); }
inline __half __float2half_rn(float x) { return static_cast<__half>(x); }

struct __nv_bfloat16 {
    unsigned short bits;
};
inline float __bfloat162float(__nv_bfloat16 x) {
    const unsigned bits = static_cast<unsigned>(x.bits) << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
inline __nv_bfloat16 __float2bfloat16_rn(float x) {
    unsigned bits;
    memcpy(&bits, &x, sizeof bits);
    if (x != x) return {0x7fff};
    return {static_cast<unsigned short>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}
