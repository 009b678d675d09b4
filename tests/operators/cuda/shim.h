// CUDA on the CPU, for tests: one kernel body, run block by block. The threads of a block are real threads
// and __syncthreads a barrier, so a missing one is a data race that a sanitizer sees.
#pragma once
#include <math.h>
#include <pthread.h>
#include <string.h>

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
inline pthread_barrier_t shim_barrier;

inline void __syncthreads() {
    if (blockDim.x > 1) pthread_barrier_wait(&shim_barrier);
}

template <typename Kernel> void shim_launch(unsigned blocks, unsigned threads, const Kernel& kernel) {
    const auto run = [&](unsigned thread) {
        threadIdx.x = thread;
        blockDim.x = threads;
        for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x) {
            kernel();
            __syncthreads();
        }
    };
    if (threads == 1) return run(0);
    pthread_barrier_init(&shim_barrier, nullptr, threads);
    std::vector<std::thread> team;
    for (unsigned thread = 0; thread < threads; ++thread) team.emplace_back(run, thread);
    for (std::thread& member : team) member.join();
    pthread_barrier_destroy(&shim_barrier);
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
