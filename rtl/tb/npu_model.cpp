// Implementation of npu_model.h.
#include "npu_model.h"

#include <unistd.h>

namespace {
uint64_t simulation_time = 0;
constexpr uint64_t kOrphanCheckCycles = 1 << 18;
}  // namespace

// Verilator asks for the time through this name.
double sc_time_stamp() { return static_cast<double>(simulation_time); }

NpuModel::NpuModel() : top(new Vtop("")), root(top->rootp), parent_(getppid()) {}

NpuModel::~NpuModel() {
  close_waves();
  delete top;
}

bool NpuModel::orphaned() const { return getppid() != parent_; }

bool NpuModel::open_waves(const std::string& path) {
#if VM_TRACE
  waves_ = new WaveFile;
  top->trace(waves_, 99);
  waves_->open(path.c_str());
  return waves_->isOpen();
#else
  (void)path;
  return false;
#endif
}

void NpuModel::dump_waves() {
#if VM_TRACE
  if (waves_ != nullptr) waves_->dump(simulation_time);
#endif
}

void NpuModel::flush_waves() {
#if VM_TRACE
  if (waves_ != nullptr) waves_->flush();
#endif
}

void NpuModel::close_waves() {
#if VM_TRACE
  if (waves_ != nullptr) {
    waves_->close();
    delete waves_;
    waves_ = nullptr;
  }
#endif
}

void NpuModel::set_time(uint64_t picoseconds) { simulation_time = picoseconds; }

void NpuModel::toggle_clock() {
  simulation_time = next_edge;
  next_edge += kHalfPeriod;
  root->npu_tb__DOT__clk_i = !root->npu_tb__DOT__clk_i;
}

uint64_t NpuModel::run_until_irq(uint64_t limit, uint64_t deadline) {
  uint64_t cycles = 0;
  while (cycles < limit && next_edge < deadline) {
    toggle_clock();
    top->eval();
    dump_waves();
    toggle_clock();
    top->eval();
    dump_waves();
    cycles++;
    if (root->npu_tb__DOT__irq || Verilated::gotFinish()) break;
    if (cycles % kOrphanCheckCycles == 0 && orphaned()) break;
  }
  return cycles;
}
