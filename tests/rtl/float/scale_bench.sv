// The integer scaling modules as the requantizer connects them: raised, multiplied, rounded.
// Operands are registered, results are combinational: what is driven in one cycle can be read at the
// end of the next. `Units` operands at once.
module scale_bench #(
  parameter int unsigned Units = 256
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,
  input  logic                   en_i,
  input  logic                   high_i,
  input  logic [      1:0]       tie_i,
  input  logic [Units-1:0][31:0] a_i,
  input  logic [Units-1:0][31:0] b_i,
  input  logic [Units-1:0][ 4:0] left_i,
  input  logic [Units-1:0][ 5:0] right_i,
  output logic [Units-1:0][31:0] scaled_o
);
  logic [Units-1:0][31:0] a_q, b_q;
  logic [Units-1:0][4:0] left_q;
  logic [Units-1:0][5:0] right_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {a_q, b_q, left_q, right_q} <= '0;
    else {a_q, b_q, left_q, right_q} <= {a_i, b_i, left_i, right_i};
  end

  for (genvar i = 0; i < Units; i++) begin : gen_units
    logic [31:0] raised;
    logic [63:0] product;

    npu_scale_raise u_raise (
      .en_i,
      .value_i (a_q[i]),
      .places_i(left_q[i]),
      .raised_o(raised)
    );
    npu_scale_multiply u_multiply (
      .en_i,
      .a_i      (raised),
      .b_i      (b_q[i]),
      .product_o(product)
    );
    npu_scale_round u_round (
      .en_i,
      .high_i,
      .tie_i    (npu_vector_pkg::tie_e'(tie_i)),
      .value_i  (product),
      .places_i (right_q[i]),
      .rounded_o(scaled_o[i])
    );
  end
endmodule
