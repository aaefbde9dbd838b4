// Main program of the co-simulation: cocotb through VPI, with the clock in C++.
//
// While npu_tb.run is low every edge goes through VPI, so that Python may wait for clock edges and drive
// the register port. When Python raises npu_tb.run, the clock runs in a tight loop without VPI until
// the interrupt, run_limit cycles or the next timed callback of Python; then run falls, which wakes
// Python. Simulation time advances alike in both. With --loop FILE cocotb is left out (npu_loop.cpp).
#include <cstdio>
#include <cstring>
#include <string>

#include "npu_loop.h"
#include "npu_model.h"
#include "verilated_vpi.h"

extern "C" void vlog_startup_routines_bootstrap(void);

namespace {

// Runs value callbacks until none fires; they may set pins that others wait for.
void settle_callbacks() {
  while (VerilatedVpi::callValueCbs()) {
  }
}

// Evaluates the current time step until neither the model nor Python changes anything.
void evaluate(NpuModel& model) {
  do {
    do {
      model.top->eval_step();
      VerilatedVpi::clearEvalNeeded();
      VerilatedVpi::doInertialPuts();
      settle_callbacks();
    } while (VerilatedVpi::evalNeeded());
    VerilatedVpi::callCbs(cbReadWriteSynch);
    VerilatedVpi::doInertialPuts();
    settle_callbacks();
  } while (VerilatedVpi::evalNeeded());
  model.top->eval_end_step();
  VerilatedVpi::callCbs(cbReadOnlySynch);
  model.dump_waves();
}

// The run that Python asked for; the clock is low.
void burst(NpuModel& model) {
  const uint64_t limit = NPU_PIN(model, run_limit);
  const uint64_t cycles = model.run_until_irq(limit, VerilatedVpi::cbNextDeadline());
  const bool ended = cycles >= limit || NPU_PIN(model, irq) || Verilated::gotFinish();
  NPU_PIN(model, run_limit) = limit - cycles;  // what is left, for Python to read
  if (ended) {
    NPU_PIN(model, run) = 0;
    model.flush_waves();
  }
}

// Moves time to the next clock edge or timed callback, whichever is first, and wakes Python.
void advance(NpuModel& model) {
  const uint64_t deadline = VerilatedVpi::cbNextDeadline();
  const bool edge = model.next_edge <= deadline;
  if (edge) {
    model.toggle_clock();
  } else {
    model.set_time(deadline);
  }
  VerilatedVpi::callCbs(cbNextSimTime);
  settle_callbacks();  // sees the clock edge before the model does: values read are those before it
  VerilatedVpi::callTimedCbs();
  settle_callbacks();
}

int run_cocotb(NpuModel& model) {
  vlog_startup_routines_bootstrap();
  Verilated::addExitCb([](void*) { VerilatedVpi::callCbs(cbEndOfSimulation); }, nullptr);
  VerilatedVpi::callCbs(cbStartOfSimulation);
  settle_callbacks();
  while (!Verilated::gotFinish() && !model.orphaned()) {
    evaluate(model);
    if (NPU_PIN(model, run) && !NPU_PIN(model, clk_i)) burst(model);
    advance(model);
  }
  model.top->final();
  VerilatedVpi::callCbs(cbEndOfSimulation);
  return Verilated::threadContextp()->errorCount() > 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::string waves;
  std::string loop;
  for (int i = 1; i + 1 < argc; i++) {
    if (std::strcmp(argv[i], "--waves") == 0) waves = argv[i + 1];
    if (std::strcmp(argv[i], "--loop") == 0) loop = argv[i + 1];
  }
  Verilated::commandArgs(argc, argv);
  Verilated::fatalOnVpiError(false);
  if (!waves.empty()) Verilated::traceEverOn(true);
  NpuModel model;
  if (!waves.empty() && !model.open_waves(waves)) {
    std::fprintf(stderr, "waves: %s cannot be written by this build\n", waves.c_str());
    return 2;
  }
  return loop.empty() ? run_cocotb(model) : run_loop(model, loop);
}
