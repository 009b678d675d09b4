// CUDA on the CPU, for tests: one kernel body, run block by block. The threads of a block are real threads
// and __syncthreads a barrier, so a missing one is a data race that a sanitizer sees.
#pragma once
#include <math.h>
#include <string.h>

#include <atomic>
#include <thread>
#include <vector>

#define __global__
#define __device__
#define __forceinline__ inline
#define __shared__ static
#define __grid_constant__
#define __launch_bounds__(threads)

struct dim3 {
    unsigned x;
};
inline thread_local dim3 blockIdx, threadIdx, blockDim;

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

template <typename Kernel> void shim_launch(unsigned blocks, unsigned threads, const Kernel& kernel) {
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
    if (threads == 1) return run(0);
    std::vector<std::thread> team;
    for (unsigned thread = 0; thread < threads; ++thread) team.emplace_back(run, thread);
    for (std::thread& member : team) member.join();
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
