// The verilated test bench with its clock, simulation time and waveform.
//
// What comes in: pins of npu_tb. What goes out: cycles. Both main programs run cycles through this class, so
// that a comparison of their speed compares nothing else.
#ifndef ACCELSIM_NPU_MODEL_H
#define ACCELSIM_NPU_MODEL_H

#include <cstdint>
#include <string>

#include "Vtop.h"
#include "Vtop___024root.h"
#include "verilated.h"

#if VM_TRACE
#if VM_TRACE_FST
#include "verilated_fst_c.h"
using WaveFile = VerilatedFstC;
#else
#include "verilated_vcd_c.h"
using WaveFile = VerilatedVcdC;
#endif
#endif

// npu_tb's variables as members of the verilated root.
#define NPU_PIN(model, name) ((model).root->npu_tb__DOT__##name)

class NpuModel {
 public:
  static constexpr uint64_t kHalfPeriod = 5000;  // picoseconds: 100 MHz

  NpuModel();
  ~NpuModel();
  NpuModel(const NpuModel&) = delete;
  NpuModel& operator=(const NpuModel&) = delete;

  // Starts a waveform; false where the model was built without.
  bool open_waves(const std::string& path);
  void dump_waves();
  void flush_waves();
  void close_waves();

  // Toggles the clock at the next edge's time, without evaluating.
  void toggle_clock();
  void set_time(uint64_t picoseconds);
  // Runs whole cycles from a low clock until irq, `limit` cycles, $finish or simulation time
  // `deadline`; returns the number of cycles.
  uint64_t run_until_irq(uint64_t limit, uint64_t deadline);
  // True once the process that started this one is gone.
  bool orphaned() const;

  Vtop* top;
  Vtop___024root* root;
  uint64_t next_edge = kHalfPeriod;

 private:
#if VM_TRACE
  WaveFile* waves_ = nullptr;
#endif
  int parent_;
};

#endif
