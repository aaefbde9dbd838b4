// Load DMA: copies strided runs of DRAM beats to rows of activation or weight memory, or to beats of
// parameter or table memory.
// Latency: a command accepted in cycle t sends its first read address in cycle t+1 and then one a
// cycle while fewer than READ_OUTSTANDING bursts are in flight (a burst leaves flight in the cycle
// after its last beat). A beat is written in the cycle after it arrives; `done_o` is high in the
// cycle after the last beat. Backpressure: AR waits for `arready_i`; R is always accepted.
module npu_load (
  input logic clk_i,
  input logic rst_ni,

  input  logic                                                                  cmd_valid_i,
  output logic                                                                  cmd_ready_o,
  input  npu_pkg::command_t                                                     cmd_i,
  output logic                                                                  done_o,
  output logic                                                                  error_o,
  input  logic              [npu_pkg::BASE_REGISTERS-1:0][npu_pkg::DRAM_AW-1:0] base_i,

  output logic                                 arvalid_o,
  input  logic                                 arready_i,
  output logic          [npu_pkg::DRAM_AW-1:0] araddr_o,
  output logic          [                 7:0] arlen_o,
  input  logic                                 rvalid_i,
  output logic                                 rready_o,
  input  npu_pkg::row_t                        rdata_i,
  input  logic          [                 1:0] rresp_i,
  input  logic                                 rlast_i,

  output logic                 act_wr_en_o,
  output logic          [15:0] act_wr_row_o,
  output npu_pkg::row_t        act_wr_data_o,
  output logic                 wgt_wr_en_o,
  output logic          [15:0] wgt_wr_row_o,
  output npu_pkg::row_t        wgt_wr_data_o,
  output logic                 par_wr_en_o,
  output logic          [15:0] par_wr_beat_o,
  output npu_pkg::row_t        par_wr_data_o,
  output logic                 tab_wr_en_o,
  output logic          [15:0] tab_wr_beat_o,
  output npu_pkg::row_t        tab_wr_data_o
);
  localparam int unsigned FlightWidth = $clog2(npu_pkg::READ_OUTSTANDING + 1);
  localparam logic [FlightWidth-1:0] MaxFlight = FlightWidth'(npu_pkg::READ_OUTSTANDING);
  localparam logic [1:0] ToAct = 2'd0;
  localparam logic [1:0] ToWgt = 2'd1;
  localparam logic [1:0] ToPar = 2'd2;
  localparam logic [1:0] ToTab = 2'd3;

  npu_pkg::load_t load;
  npu_dma_pkg::counts_t counts;
  npu_dma_pkg::dram_walk_t dram_walk;
  npu_dma_pkg::local_walk_t local_walk;
  logic accept, idle_q, done_q, error_q, burst_valid, ar_fire, beat, row_valid, row_last;
  logic [FlightWidth-1:0] flight_q;  // bursts whose address was sent and whose last beat was not
  logic [1:0] memory_q;
  logic [15:0] row, wr_row_q;
  logic wr_en_q;
  npu_pkg::row_t wr_data_q;
  logic unused_bits;

  assign load = cmd_i.instr;
  assign accept = cmd_valid_i && idle_q;
  assign counts = {load.count2, load.count1, load.count0};
  assign local_walk = {
    load.local_base, load.local_stride2, load.local_stride1, load.local_stride0, counts
  };
  always_comb begin
    dram_walk = {npu_dma_pkg::BEAT_AW'(0), load.dram_stride2, load.dram_stride1, counts};
    dram_walk.base = base_i[load.base_reg][npu_pkg::DRAM_AW-1:npu_dma_pkg::BEAT_BITS] +
        npu_dma_pkg::BEAT_AW'(load.dram_offset);
  end

  npu_dma_bursts u_bursts (
    .clk_i,
    .rst_ni,
    .start_i(accept),
    .walk_i (dram_walk),
    .valid_o(burst_valid),
    .ready_i(ar_fire),
    .addr_o (araddr_o),
    .len_o  (arlen_o)
  );

  npu_dma_rows u_rows (
    .clk_i,
    .rst_ni,
    .start_i(accept),
    .walk_i (local_walk),
    .valid_o(row_valid),
    .next_i (beat),
    .row_o  (row),
    .last_o (row_last)
  );

  assign arvalid_o = burst_valid && flight_q != MaxFlight;
  assign ar_fire = arvalid_o && arready_i;
  assign rready_o = 1'b1;
  assign beat = rvalid_i;
  assign unused_bits = ^{
    load.reserved, load.give, load.take, load.opcode, cmd_i.index, rresp_i[0], row_valid
  };

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      idle_q   <= 1'b1;
      done_q   <= 1'b0;
      flight_q <= '0;
      wr_en_q  <= 1'b0;
    end else begin
      idle_q   <= (idle_q && !cmd_valid_i) || done_q;
      done_q   <= beat && row_last;
      flight_q <= flight_q + FlightWidth'(ar_fire) - FlightWidth'(beat && rlast_i);
      wr_en_q  <= beat;
    end
  end

  always_ff @(posedge clk_i) begin
    if (accept) begin
      memory_q <= load.memory;
      error_q  <= 1'b0;
    end
    if (beat) begin
      error_q   <= error_q || rresp_i[1];
      wr_row_q  <= row;
      wr_data_q <= rdata_i;
    end
  end

  assign cmd_ready_o = idle_q;
  assign done_o = done_q;
  assign error_o = error_q;
  assign act_wr_en_o = wr_en_q && memory_q == ToAct;
  assign wgt_wr_en_o = wr_en_q && memory_q == ToWgt;
  assign par_wr_en_o = wr_en_q && memory_q == ToPar;
  assign tab_wr_en_o = wr_en_q && memory_q == ToTab;
  assign {act_wr_row_o, wgt_wr_row_o, par_wr_beat_o, tab_wr_beat_o} = {4{wr_row_q}};
  assign {act_wr_data_o, wgt_wr_data_o, par_wr_data_o, tab_wr_data_o} = {4{wr_data_q}};

`ifndef SYNTHESIS
  // A waiting command stays as it is; a stop or a reset may withdraw it.
  cmd_stable_a :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
      cmd_valid_i && !cmd_ready_o |=> !cmd_valid_i || $stable(
      cmd_i
  ))
  else $error("npu_load: command changed while it waited");
  ar_stable_a :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
      arvalid_o && !arready_i |=> arvalid_o && $stable(
      {araddr_o, arlen_o}
  ))
  else $error("npu_load: read address changed while it waited");
  r_expected_a :
  assert property (@(posedge clk_i) disable iff (!rst_ni) rvalid_i |-> row_valid)
  else $error("npu_load: a beat that no burst asked for");
`endif
endmodule
