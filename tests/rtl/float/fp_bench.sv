// Units of the float modules side by side, so that one clock cycle tests `Units` operand pairs.
module fp_bench #(
  parameter int unsigned Units = 256
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,
  input  logic                   en_i,
  input  logic [Units-1:0][31:0] a_i,
  input  logic [Units-1:0][31:0] b_i,
  output logic [Units-1:0][31:0] from_int_o,
  output logic [Units-1:0][31:0] mul_o,
  output logic [Units-1:0][31:0] add_o,
  output logic [Units-1:0][31:0] round_o
);
  logic [Units-1:0][31:0] a_q, b_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      a_q <= '0;
      b_q <= '0;
    end else begin
      a_q <= a_i;
      b_q <= b_i;
    end
  end

  for (genvar i = 0; i < Units; i++) begin : gen_units
    npu_fp_from_int u_from_int (
      .en_i,
      .value_i(a_q[i]),
      .float_o(from_int_o[i])
    );
    npu_fp_mul u_mul (
      .en_i,
      .a_i(a_q[i]),
      .b_i(b_q[i]),
      .product_o(mul_o[i])
    );
    npu_fp_add u_add (
      .en_i,
      .a_i  (a_q[i]),
      .b_i  (b_q[i]),
      .sum_o(add_o[i])
    );
    npu_fp_round u_round (
      .en_i,
      .float_i(a_q[i]),
      .value_o(round_o[i])
    );
  end
endmodule
