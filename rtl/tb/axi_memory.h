// The memory behind axi_memory.sv: one flat array, one request queue, one server.
//
// What comes in: handshakes of a cycle. What goes out: the pins of the next cycle. The timing is in
// docs/contract.md and is deterministic unless stalls are on. The array lies in a shared mapping, so that
// Python reads and writes it without copying.
#ifndef ACCELSIM_AXI_MEMORY_H
#define ACCELSIM_AXI_MEMORY_H

#include <cstdint>

extern "C" {

// Order is a contract with accelsim/cosim/memory.py.
struct AxiMemoryOptions {
  uint64_t latency;         // cycles from arrival to service, at least 2
  uint64_t queue_depth;     // requests that are accepted before ready falls
  uint64_t seed;            // of everything random
  uint64_t ready_stall;     // chance of 256 that AR, AW or W is not ready in a cycle
  uint64_t r_gap;           // chance of 256 that a cycle has no R beat
  uint64_t b_delay_max;     // extra cycles of a B response, uniform
  uint64_t latency_extra_max;  // extra cycles of a request's latency, uniform
  uint64_t error_low;       // SLVERR for addresses in [error_low, error_high)
  uint64_t error_high;
  uint64_t error_reads;     // 1: reads fail there
  uint64_t error_writes;    // 1: writes fail there and change nothing
};

struct AxiMemoryCounters {
  uint64_t read_bursts;
  uint64_t read_beats;
  uint64_t write_bursts;
  uint64_t write_beats;
  uint64_t error_beats;
  uint64_t r_stall_cycles;   // R valid and not ready
  uint64_t b_stall_cycles;
  uint64_t not_ready_cycles;  // cycles in which a stall took AR, AW or W ready away
  uint64_t queue_peak;
};

// Maps `bytes` of the file at `path` (created if missing; anonymous memory if empty) to bus
// addresses from `origin` on. Returns 0, or errno.
int axi_memory_map(const char* path, uint64_t origin, uint64_t bytes);
uint8_t* axi_memory_pointer(void);
uint64_t axi_memory_bytes(void);
void axi_memory_configure(const AxiMemoryOptions* options);
void axi_memory_counters(AxiMemoryCounters* counters);
void axi_memory_clear_counters(void);
}

#endif
