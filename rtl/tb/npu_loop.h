// A run without cocotb: the measure of how fast the verilated model can be.
#ifndef ACCELSIM_NPU_LOOP_H
#define ACCELSIM_NPU_LOOP_H

#include <string>

#include "npu_model.h"

// Executes the job in `path` and prints "cycles N seconds S" for each run in it. A line of the job:
//   map PATH ORIGIN BYTES | latency CYCLES | write ADDRESS DATA | run LIMIT
// Numbers are decimal or 0x…. Returns the exit status.
int run_loop(NpuModel& model, const std::string& path);

#endif
