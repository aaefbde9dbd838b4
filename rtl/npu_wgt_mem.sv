// Purpose: weight memory, written by the load DMA and read by the matrix engine.
// Latency: row in cycle t, data in cycle t+1.
// Backpressure: none; each side has its own port.

module npu_wgt_mem (
  input logic clk_i,

  input logic                 wr_en_i,
  input logic          [15:0] wr_row_i,
  input npu_pkg::row_t        wr_data_i,

  input  logic                 rd_en_i,
  input  logic          [15:0] rd_row_i,
  output npu_pkg::row_t        rd_data_o
);

  localparam int unsigned RowWidth = npu_pkg::WGT_AW;

  npu_ram #(
    .Width(npu_pkg::BUS_BITS),
    .Depth(npu_pkg::WGT_ROWS)
  ) u_ram (
    .clk_i,
    .rd_en_i,
    .rd_row_i(rd_row_i[RowWidth-1:0]),
    .rd_data_o,
    .wr_en_i,
    .wr_row_i(wr_row_i[RowWidth-1:0]),
    .wr_data_i
  );

  if (RowWidth < 16) begin : gen_unused
    logic unused_row_bits;
    assign unused_row_bits = ^{rd_row_i[15:RowWidth], wr_row_i[15:RowWidth]};
  end

endmodule
