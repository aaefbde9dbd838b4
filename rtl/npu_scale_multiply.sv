// The exact product of two signed integers.
// Combinational. The result is 0 while `en_i` is low, so that simulation skips the work.
module npu_scale_multiply (
  input  logic               en_i,
  input  logic signed [31:0] a_i,
  input  logic signed [31:0] b_i,
  output logic signed [63:0] product_o
);
  always_comb begin
    product_o = '0;
    if (en_i) product_o = 64'(a_i) * 64'(b_i);
  end
endmodule
