// Observer of the NPU in npu_tb: a record for each retired instruction, with a digest over the final
// value of every row that it wrote (accelsim/spec/digest.py). Passive; simulation only.
// Rows of a cycle count before an end in the same cycle. Nothing is computed while enable_i is low.
module npu_observe (
  input logic clk_i,
  input logic rst_ni,
  input logic enable_i
);
  localparam int unsigned Load = 32'(npu_pkg::ENGINE_LOAD);
  localparam int unsigned Matrix = 32'(npu_pkg::ENGINE_MATRIX);
  localparam int unsigned Vector = 32'(npu_pkg::ENGINE_VECTOR);
  localparam int unsigned Store = 32'(npu_pkg::ENGINE_STORE);
  localparam int unsigned RowWords = npu_pkg::LANES / 4;
  localparam int unsigned AccWords = npu_pkg::LANES;
  localparam int unsigned AccBankShift = 20;
  localparam int unsigned DramBaseShift = 40;
  localparam int unsigned BeatShift = $clog2(npu_pkg::BUS_BYTES);

  import "DPI-C" function void npu_observe_start(input int unsigned engine);
  import "DPI-C" function void npu_observe_row(
    input int unsigned engine,
    input longint unsigned address,
    input int unsigned words,
    input bit [RowWords*32-1:0] row
  );
  import "DPI-C" function void npu_observe_acc_row(
    input int unsigned engine,
    input longint unsigned address,
    input int unsigned words,
    input bit [AccWords*32-1:0] row
  );
  import "DPI-C" function void npu_observe_burst(
    input longint unsigned address,
    input int unsigned beats
  );
  import "DPI-C" function void npu_observe_beat(
    input int unsigned engine,
    input int unsigned words,
    input bit [RowWords*32-1:0] row
  );
  import "DPI-C" function void npu_observe_retire(
    input int unsigned engine,
    input int unsigned index,
    input longint unsigned start_cycle,
    input longint unsigned end_cycle
  );

  logic [3:0] starts, ends;
  logic [63:0] start_cycle_q[4];
  npu_pkg::store_t store, store_q;
  logic aw_fire, w_fire;
  logic [npu_pkg::DRAM_AW-1:0] aw_offset;

  assign starts = npu_tb.u_npu.engine_start;
  assign ends = npu_tb.u_npu.engine_done;
  assign store = npu_tb.u_npu.cmd[Store].instr;
  assign aw_fire = npu_tb.u_npu.m_axi_awvalid_o && npu_tb.u_npu.m_axi_awready_i;
  assign w_fire = npu_tb.u_npu.m_axi_wvalid_o && npu_tb.u_npu.m_axi_wready_i;
  assign aw_offset = npu_tb.u_npu.m_axi_awaddr_o - npu_tb.u_npu.base[store_q.base_reg];

  always_ff @(posedge clk_i) begin
    if (rst_ni && enable_i) begin
      if (npu_tb.u_npu.u_datapath.act_wr_en[0]) begin
        npu_observe_row(Load, 64'(npu_tb.u_npu.u_datapath.act_wr_row[0]), RowWords,
                        npu_tb.u_npu.u_datapath.act_wr_data[0]);
      end
      if (npu_tb.u_npu.u_datapath.wgt_wr_en) begin
        npu_observe_row(Load, 64'(npu_tb.u_npu.u_datapath.wgt_wr_row), RowWords,
                        npu_tb.u_npu.u_datapath.wgt_wr_data);
      end
      if (npu_tb.u_npu.u_datapath.par_wr_en) begin
        npu_observe_row(Load, 64'(npu_tb.u_npu.u_datapath.par_wr_beat), RowWords,
                        npu_tb.u_npu.u_datapath.par_wr_data);
      end
      if (npu_tb.u_npu.u_datapath.tab_wr_en) begin
        npu_observe_row(Load, 64'(npu_tb.u_npu.u_datapath.tab_wr_beat), RowWords,
                        npu_tb.u_npu.u_datapath.tab_wr_data);
      end
      if (npu_tb.u_npu.u_datapath.acc_m_wr_en &&
          npu_tb.u_npu.u_datapath.u_matrix.acc_wr_final) begin
        npu_observe_acc_row(Matrix,
                            (64'(npu_tb.u_npu.u_datapath.acc_m_wr_bank) << AccBankShift) +
                            64'(npu_tb.u_npu.u_datapath.acc_m_wr_row),
                            AccWords, npu_tb.u_npu.u_datapath.acc_m_wr_data);
      end
      if (npu_tb.u_npu.u_datapath.act_wr_en[1]) begin
        npu_observe_row(Vector, 64'(npu_tb.u_npu.u_datapath.act_wr_row[1]), RowWords,
                        npu_tb.u_npu.u_datapath.act_wr_data[1]);
      end
      if (aw_fire) begin
        npu_observe_burst(64'(aw_offset >> BeatShift) + (64'(store_q.base_reg) << DramBaseShift),
                          32'(npu_tb.u_npu.m_axi_awlen_o) + 32'd1);
      end
      if (w_fire) npu_observe_beat(Store, RowWords, npu_tb.u_npu.m_axi_wdata_o);
      for (int unsigned e = 0; e < 4; e++) begin
        if (ends[e]) begin
          npu_observe_retire(e, npu_tb.u_npu.running_index[e], start_cycle_q[e],
                             npu_tb.u_npu.cycles);
        end
        if (starts[e]) begin
          npu_observe_start(e);
          start_cycle_q[e] <= npu_tb.u_npu.cycles;
        end
      end
      if (starts[Store]) store_q <= store;
    end
  end

  logic unused;  // only base_reg matters
  assign unused = ^store_q;
endmodule
