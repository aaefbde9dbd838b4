// The reciprocal of a sum of exponentials: 1 / (sum in Q12.19) = scale · 2^-bits with a scale in Q0.31
// and bits = 12 - leading zeros. Three Newton steps on one multiplier.
// Latency: of a sum that `start_i` presents in cycle t, `scale_o` and `places_o` are there in cycle t+15
// and stay. Backpressure: none; the next start comes later than that.
//
// The sum without its leading zeros, halved, is the denominator d, Q0.31 in [1/2, 1). x is Q2.29:
//   x = 48/17 - 32/17·d;  three times x += x·(1 - d·x)
// where each product is rounded as the doubling high multiply does. The first error 1 - d·x lies within
// ±1/17, every later one is the square of the one before, so x stays between 15/16 and 17/8 and nothing
// leaves 32 bits but the last doubling, which saturates. A sum of 0 would need more: its scale is known.
module npu_rows_reciprocal (
  input logic clk_i,
  input logic rst_ni,

  input logic        start_i,
  input logic [31:0] sum_i,

  output logic [30:0] scale_o,
  output logic [ 5:0] places_o  // that a Q0.31 product with the scale is divided by: 31 - 8 + bits
);
  localparam logic signed [31:0] C48Over17 = 32'sd1515870810;  // Q2.29
  localparam logic signed [31:0] C32Over17 = 32'sd1010580540;
  localparam logic signed [31:0] One = 32'sd1 <<< 29;
  localparam logic [2:0] LastProduct = 3'd6;

  logic busy_q, update_q;  // a product is used in the cycle after it was made
  logic [2:0] product_q;  // 0: with 32/17; odd: denominator · x; even: x · error
  logic is_zero_q;
  logic [4:0] zeros_d, zeros_q;
  logic [31:0] normal;
  logic [30:0] denominator_q;
  logic signed [31:0] x_d, x_q, error_d, error_q, factor, high_d, high_q;
  logic [30:0] multiplicand;
  logic signed [63:0] product;

  always_comb begin
    zeros_d = '0;
    normal  = sum_i;
    if (start_i) begin
      for (int step = 4; step >= 0; step--) begin
        if ((normal >> (32 - (1 << step))) == '0) begin
          normal = normal << (1 << step);
          zeros_d[step] = 1'b1;
        end
      end
    end
  end

  always_comb begin
    multiplicand = (product_q[0] || product_q == '0) ? denominator_q : x_q[30:0];
    if (product_q == '0) factor = C32Over17;
    else factor = product_q[0] ? x_q : error_q;
    product = '0;
    if (busy_q && !update_q) begin
      product = $signed({33'b0, multiplicand}) * 64'(factor) + (64'sd1 <<< 30);
    end
    high_d = 32'(product >>> 31);
    x_d = x_q;
    error_d = error_q;
    if (product_q == '0) x_d = C48Over17 - high_q;
    else if (product_q[0]) error_d = One - high_q;
    else x_d = x_q + (high_q <<< 2);
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      busy_q <= 1'b0;
    end else if (start_i) begin
      busy_q <= 1'b1;
    end else if (update_q && product_q == LastProduct) begin
      busy_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      is_zero_q <= sum_i == '0;
      zeros_q <= (sum_i == '0) ? '0 : zeros_d;
      denominator_q <= normal[31:1];
      product_q <= '0;
      update_q <= 1'b0;
    end else if (busy_q) begin
      update_q <= !update_q;
      if (!update_q) high_q <= high_d;
      if (update_q) begin
        x_q <= x_d;
        error_q <= error_d;
        product_q <= product_q + 3'd1;
      end
    end
  end

  // x doubled, at most 1 - 2^-31.
  assign scale_o  = (is_zero_q || x_q[30]) ? '1 : {x_q[29:0], 1'b0};
  assign places_o = 6'd35 - 6'(zeros_q);
endmodule
