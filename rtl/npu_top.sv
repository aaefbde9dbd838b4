// Purpose: the NPU. Fetch, dispatch, one queue for each of the four engines, the datapath, registers
// and the AXI4 master. It only wires; docs/contract.md states the cycles.
// Latency: see the modules. Backpressure: AXI may stall any channel at any time.
//
// For observers: engine_start and engine_done mark the start and end cycle of each engine's
// instruction, running_index is its index in between (the end cycle included), cycles counts from
// the start of the run.

module npu_top (
  input  logic clk_i,
  input  logic rst_ni,
  output logic irq_o,

  input  logic [npu_pkg::REG_AW-1:0] s_axil_awaddr_i,
  input  logic                       s_axil_awvalid_i,
  output logic                       s_axil_awready_o,
  input  logic [               31:0] s_axil_wdata_i,
  input  logic [                3:0] s_axil_wstrb_i,
  input  logic                       s_axil_wvalid_i,
  output logic                       s_axil_wready_o,
  output logic [                1:0] s_axil_bresp_o,
  output logic                       s_axil_bvalid_o,
  input  logic                       s_axil_bready_i,
  input  logic [npu_pkg::REG_AW-1:0] s_axil_araddr_i,
  input  logic                       s_axil_arvalid_i,
  output logic                       s_axil_arready_o,
  output logic [               31:0] s_axil_rdata_o,
  output logic [                1:0] s_axil_rresp_o,
  output logic                       s_axil_rvalid_o,
  input  logic                       s_axil_rready_i,

  output logic [                   1:0] m_axi_awid_o,
  output logic [  npu_pkg::DRAM_AW-1:0] m_axi_awaddr_o,
  output logic [                   7:0] m_axi_awlen_o,
  output logic [                   2:0] m_axi_awsize_o,
  output logic [                   1:0] m_axi_awburst_o,
  output logic                          m_axi_awvalid_o,
  input  logic                          m_axi_awready_i,
  output logic [ npu_pkg::BUS_BITS-1:0] m_axi_wdata_o,
  output logic [npu_pkg::BUS_BYTES-1:0] m_axi_wstrb_o,
  output logic                          m_axi_wlast_o,
  output logic                          m_axi_wvalid_o,
  input  logic                          m_axi_wready_i,
  input  logic [                   1:0] m_axi_bid_i,
  input  logic [                   1:0] m_axi_bresp_i,
  input  logic                          m_axi_bvalid_i,
  output logic                          m_axi_bready_o,
  output logic [                   1:0] m_axi_arid_o,
  output logic [  npu_pkg::DRAM_AW-1:0] m_axi_araddr_o,
  output logic [                   7:0] m_axi_arlen_o,
  output logic [                   2:0] m_axi_arsize_o,
  output logic [                   1:0] m_axi_arburst_o,
  output logic                          m_axi_arvalid_o,
  input  logic                          m_axi_arready_i,
  input  logic [                   1:0] m_axi_rid_i,
  input  logic [ npu_pkg::BUS_BITS-1:0] m_axi_rdata_i,
  input  logic [                   1:0] m_axi_rresp_i,
  input  logic                          m_axi_rlast_i,
  input  logic                          m_axi_rvalid_i,
  output logic                          m_axi_rready_o
);

  localparam int unsigned Load = 32'(npu_pkg::ENGINE_LOAD);
  localparam int unsigned Store = 32'(npu_pkg::ENGINE_STORE);

  // ------------------------------------------------------------------------- registers, control
  logic start, soft_reset, clear, reset_now, finish, run, busy, resetting, done, error;
  logic [31:0] length, opcodes, watchdog, error_index;
  logic [63:0] program_hash, cycles;
  logic [7:0] error_code;
  logic [2:0] error_engine;
  logic [npu_pkg::BASE_REGISTERS-1:0][npu_pkg::DRAM_AW-1:0] base;
  logic [npu_pkg::BASE_REGISTERS-1:0][31:0] size;
  logic [15:0][7:0] preset, token_count;

  logic [3:0] engine_start, engine_busy, engine_done, queue_empty, overflow;
  logic [3:0][31:0] running_index, oldest_index;
  logic [3:0] conflict;
  logic load_error, store_error;
  logic fetch_quiet, end_waits, dispatch_error;
  logic [ 7:0] dispatch_code;
  logic [31:0] dispatch_index;

  npu_regs u_regs (
    .clk_i,
    .rst_ni,
    .s_axil_awaddr_i,
    .s_axil_awvalid_i,
    .s_axil_awready_o,
    .s_axil_wdata_i,
    .s_axil_wstrb_i,
    .s_axil_wvalid_i,
    .s_axil_wready_o,
    .s_axil_bresp_o,
    .s_axil_bvalid_o,
    .s_axil_bready_i,
    .s_axil_araddr_i,
    .s_axil_arvalid_i,
    .s_axil_arready_o,
    .s_axil_rdata_o,
    .s_axil_rresp_o,
    .s_axil_rvalid_o,
    .s_axil_rready_i,
    .start_o       (start),
    .reset_o       (soft_reset),
    .irq_o,
    .length_o      (length),
    .opcodes_o     (opcodes),
    .hash_o        (program_hash),
    .watchdog_o    (watchdog),
    .base_o        (base),
    .size_o        (size),
    .preset_o      (preset),
    .clear_i       (reset_now),
    .finish_i      (finish),
    .busy_i        (busy),
    .resetting_i   (resetting),
    .done_i        (done),
    .error_i       (error),
    .error_code_i  (error_code),
    .error_index_i (error_index),
    .error_engine_i(error_engine),
    .cycles_i      (cycles),
    .count_i       (token_count)
  );

  npu_control u_control (
    .clk_i,
    .rst_ni,
    .start_i         (start),
    .reset_i         (soft_reset),
    .watchdog_i      (watchdog),
    .opcodes_i       (opcodes),
    .program_hash_i  (program_hash),
    .engine_busy_i   (engine_busy),
    .queue_empty_i   (queue_empty),
    .fetch_quiet_i   (fetch_quiet),
    .end_i           (end_waits),
    .running_index_i (running_index),
    .oldest_index_i  (oldest_index),
    .dispatch_index_i(dispatch_index),
    .dispatch_error_i(dispatch_error),
    .dispatch_code_i (dispatch_code),
    .load_error_i    (engine_done[Load] && load_error),
    .store_error_i   (engine_done[Store] && store_error),
    .overflow_i      (overflow),
    .conflict_i      (conflict),
    .run_o           (run),
    .clear_o         (clear),
    .reset_o         (reset_now),
    .finish_o        (finish),
    .busy_o          (busy),
    .resetting_o     (resetting),
    .done_o          (done),
    .error_o         (error),
    .error_code_o    (error_code),
    .error_index_o   (error_index),
    .error_engine_o  (error_engine),
    .cycles_o        (cycles)
  );

  // ----------------------------------------------------------------- fetch, dispatch, read channel
  logic fetch_ar_valid, fetch_ar_ready, fetch_r_valid, load_ar_valid, load_ar_ready, load_r_valid;
  logic [npu_pkg::DRAM_AW-1:0] fetch_ar_addr, load_ar_addr;
  logic [7:0] fetch_ar_len, load_ar_len;
  logic instr_valid, instr_ready, instr_error;
  npu_pkg::instr_t instr;
  logic [3:0] push_valid, push_ready;
  npu_pkg::command_t push_cmd;

  npu_axi_read u_axi_read (
    .clk_i,
    .rst_ni,
    .fetch_ar_valid_i(fetch_ar_valid),
    .fetch_ar_ready_o(fetch_ar_ready),
    .fetch_ar_addr_i (fetch_ar_addr),
    .fetch_ar_len_i  (fetch_ar_len),
    .fetch_r_valid_o (fetch_r_valid),
    .load_ar_valid_i (load_ar_valid),
    .load_ar_ready_o (load_ar_ready),
    .load_ar_addr_i  (load_ar_addr),
    .load_ar_len_i   (load_ar_len),
    .load_r_valid_o  (load_r_valid),
    .m_axi_arid_o,
    .m_axi_araddr_o,
    .m_axi_arlen_o,
    .m_axi_arsize_o,
    .m_axi_arburst_o,
    .m_axi_arvalid_o,
    .m_axi_arready_i,
    .m_axi_rid_i,
    .m_axi_rvalid_i,
    .m_axi_rready_o
  );

  npu_fetch u_fetch (
    .clk_i,
    .rst_ni,
    .clear_i      (clear),
    .run_i        (run),
    .base_i       (base[0]),
    .length_i     (length),
    .ar_valid_o   (fetch_ar_valid),
    .ar_ready_i   (fetch_ar_ready),
    .ar_addr_o    (fetch_ar_addr),
    .ar_len_o     (fetch_ar_len),
    .r_valid_i    (fetch_r_valid),
    .r_data_i     (m_axi_rdata_i),
    .r_last_i     (m_axi_rlast_i),
    .r_error_i    (m_axi_rresp_i[1]),
    .instr_valid_o(instr_valid),
    .instr_ready_i(instr_ready),
    .instr_o      (instr),
    .instr_error_o(instr_error),
    .quiet_o      (fetch_quiet)
  );

  npu_dispatch u_dispatch (
    .clk_i,
    .rst_ni,
    .clear_i      (clear),
    .run_i        (run),
    .length_i     (length),
    .opcodes_i    (opcodes),
    .size_i       (size),
    .instr_valid_i(instr_valid),
    .instr_ready_o(instr_ready),
    .instr_i      (instr),
    .instr_error_i(instr_error),
    .push_valid_o (push_valid),
    .push_ready_i (push_ready),
    .push_cmd_o   (push_cmd),
    .end_o        (end_waits),
    .error_valid_o(dispatch_error),
    .error_code_o (dispatch_code),
    .index_o      (dispatch_index)
  );

  // ------------------------------------------------------------------------- queues, semaphores
  logic [3:0] cmd_valid, cmd_ready;
  logic [3:0][3:0] tokens, take, give;
  npu_pkg::command_t [3:0] cmd;

  for (genvar e = 0; e < 4; e++) begin : gen_queue
    npu_queue u_queue (
      .clk_i,
      .rst_ni,
      .clear_i        (clear),
      .run_i          (run),
      .push_valid_i   (push_valid[e]),
      .push_ready_o   (push_ready[e]),
      .push_cmd_i     (push_cmd),
      .tokens_i       (tokens[e]),
      .take_o         (take[e]),
      .give_o         (give[e]),
      .cmd_valid_o    (cmd_valid[e]),
      .cmd_ready_i    (cmd_ready[e]),
      .cmd_o          (cmd[e]),
      .done_i         (engine_done[e]),
      .start_o        (engine_start[e]),
      .busy_o         (engine_busy[e]),
      .running_index_o(running_index[e]),
      .empty_o        (queue_empty[e]),
      .oldest_index_o (oldest_index[e])
    );
  end

  npu_semaphores u_semaphores (
    .clk_i,
    .rst_ni,
    .load_i    (start),
    .clear_i   (reset_now),
    .preset_i  (preset),
    .give_i    (give),
    .take_i    (take),
    .tokens_o  (tokens),
    .overflow_o(overflow),
    .count_o   (token_count)
  );

  // ------------------------------------------------------------------------- engines, memories
  npu_datapath u_datapath (
    .clk_i,
    .rst_ni,
    .cmd_valid_i  (cmd_valid),
    .cmd_ready_o  (cmd_ready),
    .cmd_i        (cmd),
    .done_o       (engine_done),
    .load_error_o (load_error),
    .store_error_o(store_error),
    .conflict_o   (conflict),
    .base_i       (base),
    .ar_valid_o   (load_ar_valid),
    .ar_ready_i   (load_ar_ready),
    .ar_addr_o    (load_ar_addr),
    .ar_len_o     (load_ar_len),
    .r_valid_i    (load_r_valid),
    .r_data_i     (m_axi_rdata_i),
    .r_resp_i     (m_axi_rresp_i),
    .r_last_i     (m_axi_rlast_i),
    .aw_valid_o   (m_axi_awvalid_o),
    .aw_ready_i   (m_axi_awready_i),
    .aw_addr_o    (m_axi_awaddr_o),
    .aw_len_o     (m_axi_awlen_o),
    .w_valid_o    (m_axi_wvalid_o),
    .w_ready_i    (m_axi_wready_i),
    .w_data_o     (m_axi_wdata_o),
    .w_last_o     (m_axi_wlast_o),
    .b_valid_i    (m_axi_bvalid_i),
    .b_ready_o    (m_axi_bready_o),
    .b_resp_i     (m_axi_bresp_i)
  );

  assign m_axi_awid_o    = '0;
  assign m_axi_awsize_o  = 3'($clog2(npu_pkg::BUS_BYTES));
  assign m_axi_awburst_o = 2'b01;  // INCR
  assign m_axi_wstrb_o   = '1;

  logic unused_bits;
  assign unused_bits = ^{m_axi_bid_i, engine_start};

endmodule
