/* Nanoseconds in buckets of under one percent of their value: any number of values, fixed memory. */
#ifndef BENCH_HISTOGRAM_H
#define BENCH_HISTOGRAM_H

#include <stdint.h>
#include <stdio.h>

#define HISTOGRAM_SUBS 128 /* buckets in each power of two */
#define HISTOGRAM_BUCKETS (58 * HISTOGRAM_SUBS)

struct histogram {
    uint64_t count, most, buckets[HISTOGRAM_BUCKETS];
    double sum;
};

static inline int histogram_bucket(uint64_t value)
{
    if (value < HISTOGRAM_SUBS)
        return (int)value;
    int shift = 63 - __builtin_clzll(value) - 7;
    return (shift + 1) * HISTOGRAM_SUBS + (int)((value >> shift) & (HISTOGRAM_SUBS - 1));
}

static inline double histogram_value(int bucket)
{
    if (bucket < HISTOGRAM_SUBS)
        return bucket;
    int shift = bucket / HISTOGRAM_SUBS - 1;
    return (double)((uint64_t)(HISTOGRAM_SUBS + bucket % HISTOGRAM_SUBS) << shift);
}

static inline void histogram_add(struct histogram *of, uint64_t value)
{
    of->count++;
    of->sum += (double)value;
    of->most = value > of->most ? value : of->most;
    of->buckets[histogram_bucket(value)]++;
}

static inline double histogram_quantile(const struct histogram *of, double share)
{
    uint64_t wanted = (uint64_t)(share * (double)of->count), before = 0;
    if (of->count == 0)
        return 0;
    for (int bucket = 0; bucket < HISTOGRAM_BUCKETS; bucket++) {
        before += of->buckets[bucket];
        if (before > wanted)
            return histogram_value(bucket);
    }
    return (double)of->most;
}

static inline void histogram_print(const char *name, const struct histogram *of)
{
    double mean = of->count ? of->sum / (double)of->count : 0;
    printf("\"%s_us\":{\"count\":%llu,\"mean\":%.1f,\"p50\":%.1f,\"p90\":%.1f,\"p99\":%.1f,"
           "\"p999\":%.1f,\"max\":%.1f},",
           name, (unsigned long long)of->count, mean / 1e3, histogram_quantile(of, .5) / 1e3,
           histogram_quantile(of, .9) / 1e3, histogram_quantile(of, .99) / 1e3,
           histogram_quantile(of, .999) / 1e3, (double)of->most / 1e3);
}

#endif
