// Purpose: weight loader of the matrix engine. Reads the rows of one weight tile after another
// (LANES rows for conv, DEPTHWISE_TAPS for dwconv; tiles follow each other without gaps) and hands
// them, minus the zero point, to the shadow buffers of the datapaths.
// Latency: the first row is requested in the cycle of `tile_i`, then one a cycle; a row is on
// `row_o` one cycle after its request.
// Backpressure: none.

module npu_matrix_weights (
  input logic clk_i,
  input logic rst_ni,

  input logic                 start_i,  // with tile_i: the first tile of job_i
  input logic                 tile_i,   // load the next tile
  input npu_matrix_pkg::job_t job_i,

  output logic                 rd_en_o,
  output logic          [15:0] rd_row_o,
  input  npu_pkg::row_t        rd_data_i,

  output logic                                                   row_valid_o,
  output logic                      [$clog2(npu_pkg::LANES)-1:0] row_index_o,
  output npu_matrix_pkg::diff_row_t                              row_o
);

  localparam int unsigned IndexWidth = $clog2(npu_pkg::LANES);
  localparam logic [IndexWidth-1:0] LastOfTile = IndexWidth'(npu_pkg::LANES - 1);
  localparam logic [IndexWidth-1:0] LastOfTaps = IndexWidth'(npu_pkg::DEPTHWISE_TAPS - 1);

  logic busy_d, busy_q, valid_q;
  logic [IndexWidth-1:0] index, index_d, index_q, read_q;
  logic [15:0] next_d, next_q;

  assign index    = tile_i ? '0 : index_q;
  assign rd_en_o  = tile_i || busy_q;
  assign rd_row_o = start_i ? job_i.wgt_base : next_q;

  always_comb begin
    busy_d  = busy_q;
    index_d = index_q;
    next_d  = next_q;
    if (rd_en_o) begin
      busy_d  = index != (job_i.depthwise ? LastOfTaps : LastOfTile);
      index_d = index + IndexWidth'(1);
      next_d  = rd_row_o + 16'd1;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      busy_q  <= 1'b0;
      index_q <= '0;
      next_q  <= '0;
      valid_q <= 1'b0;
      read_q  <= '0;
    end else begin
      busy_q  <= busy_d;
      index_q <= index_d;
      next_q  <= next_d;
      valid_q <= rd_en_o;
      read_q  <= index;
    end
  end

  assign row_valid_o = valid_q;
  assign row_index_o = read_q;

  always_comb begin
    row_o = '0;
    if (valid_q) begin
      for (int i = 0; i < npu_pkg::LANES; i++) begin
        row_o[i] = 9'(signed'(rd_data_i[i])) - 9'(job_i.weight_zero_point);
      end
    end
  end

  logic unused_job;
  assign unused_job = ^job_i;

`ifndef SYNTHESIS
  // A tile is loaded whole before the next one is asked for.
  tile_after_tile :
  assert property (@(posedge clk_i) disable iff (!rst_ni) tile_i |-> !busy_q)
  else $error("npu_matrix_weights: tile requested while another is loading");
`endif

endmodule
