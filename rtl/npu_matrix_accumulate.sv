// Purpose: adds sums to accumulator rows, or replaces them, and clears lanes beyond the tail.
// Latency: sums in cycle t; read of the old row in t, addition in t+1, write in t+2. The same row
// comes again LANES or more cycles later, when its write is done.
// Backpressure: none.

module npu_matrix_accumulate (
  input logic clk_i,
  input logic rst_ni,

  input logic                          valid_i,
  input npu_matrix_pkg::column_t       column_i,
  input npu_pkg::word_row_t            sums_i,
  input logic                          bank_i,     // stable through an instruction
  input logic                    [5:0] out_tail_i,

  output logic                      rd_en_o,
  output logic                      rd_bank_o,
  output logic               [15:0] rd_row_o,
  input  npu_pkg::word_row_t        rd_data_i,

  output logic                      wr_en_o,
  output logic                      wr_final_o,  // no later tile changes this row
  output logic                      wr_bank_o,
  output logic               [15:0] wr_row_o,
  output npu_pkg::word_row_t        wr_data_o
);

  logic take, valid_q, wr_en_q, wr_final_q, overwrite_q, final_q, out_last_q;
  logic [15:0] row_q, wr_row_q;
  npu_pkg::word_row_t sums_q, wr_data_d, wr_data_q;

  assign take      = valid_i && column_i.emit;
  assign rd_en_o   = take && !column_i.overwrite;
  assign rd_bank_o = bank_i;
  assign rd_row_o  = column_i.acc_row;

  always_comb begin
    wr_data_d = wr_data_q;
    if (valid_q) begin
      for (int o = 0; o < npu_pkg::LANES; o++) begin
        wr_data_d[o] = sums_q[o] + (overwrite_q ? 32'd0 : rd_data_i[o]);
        if (out_last_q && 6'(o) >= out_tail_i) wr_data_d[o] = '0;
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid_q     <= 1'b0;
      overwrite_q <= 1'b0;
      final_q     <= 1'b0;
      out_last_q  <= 1'b0;
      row_q       <= '0;
      sums_q      <= '0;
      wr_en_q     <= 1'b0;
      wr_final_q  <= 1'b0;
      wr_row_q    <= '0;
      wr_data_q   <= '0;
    end else begin
      valid_q <= take;
      if (take) begin
        overwrite_q <= column_i.overwrite;
        final_q     <= column_i.final_tile;
        out_last_q  <= column_i.out_last;
        row_q       <= column_i.acc_row;
        sums_q      <= sums_i;
      end
      wr_en_q <= valid_q;
      if (valid_q) begin
        wr_final_q <= final_q;
        wr_row_q   <= row_q;
        wr_data_q  <= wr_data_d;
      end
    end
  end

  assign wr_en_o    = wr_en_q;
  assign wr_final_o = wr_final_q;
  assign wr_bank_o  = bank_i;
  assign wr_row_o   = wr_row_q;
  assign wr_data_o  = wr_data_q;

  logic unused_column;
  assign unused_column = ^{column_i.in_range, column_i.first, column_i.in_last};

endmodule
