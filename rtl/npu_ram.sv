// Purpose: a memory bank with one read and one write port, as block RAM or a macro provides it.
// Latency: address in cycle t, data in cycle t+1; a write in cycle t is seen by a read in t+1.
// Backpressure: none. A read of the row that is written in the same cycle gives the old contents.

module npu_ram #(
  parameter int unsigned Width = 64,
  parameter int unsigned Depth = 64,
  localparam int unsigned RowWidth = $clog2(Depth)
) (
  input  logic                clk_i,
  input  logic                rd_en_i,
  input  logic [RowWidth-1:0] rd_row_i,
  output logic [   Width-1:0] rd_data_o,
  input  logic                wr_en_i,
  input  logic [RowWidth-1:0] wr_row_i,
  input  logic [   Width-1:0] wr_data_i
);

  logic [Width-1:0] mem[Depth];
  logic [Width-1:0] rd_data_q;

  always_ff @(posedge clk_i) begin
    if (wr_en_i) mem[wr_row_i] <= wr_data_i;
    if (rd_en_i) rd_data_q <= mem[rd_row_i];
  end

  assign rd_data_o = rd_data_q;

endmodule
