// The reciprocal of a standard deviation, from the sums over a pixel's elements:
//   V = count·squares - sum² + epsilon; root = floor(sqrt(V·4^h)), h the largest with V·4^h < 2^48;
//   inverse = floor(2^54 / root); places = 34 - h. Root and quotient take one bit a cycle.
// Latency: of sums that `start_i` presents in cycle t, the results are there in cycle t+59 and stay.
// Backpressure: none; the next start comes later than that.
//
// At most 4096 elements of int8: V < 2^38 + 2^47. A V of 0 means that all elements are equal, so that
// whatever is multiplied with the inverse is 0. Otherwise V·4^h has 47 or 48 bits, the root 24, and the
// inverse 31, or 32 when it is 2^31.
module npu_rows_root (
  input logic clk_i,
  input logic rst_ni,

  input logic               start_i,
  input logic        [12:0] count_i,
  input logic signed [19:0] sum_i,
  input logic        [26:0] squares_i,
  input logic        [46:0] epsilon_i,

  output logic [31:0] inverse_o,
  output logic [ 5:0] places_o
);
  localparam logic [5:0] RootBits = 6'd24;
  localparam logic [5:0] QuotientBits = 6'd32;
  // 2^54 without the 32 zeros that the division shifts in.
  localparam logic [25:0] FirstRemainder = 26'd1 << 22;

  typedef enum logic [2:0] {
    StIdle,
    StVariance,
    StRaise,
    StRoot,
    StQuotient
  } state_e;

  state_e state_d, state_q;
  logic [5:0] left_d, left_q;  // bits that are to come
  logic [39:0] all_squares_q, squared_sum_q;
  logic [47:0] radicand_d, radicand_q;  // V, then V·4^h, then what of it was not used yet
  logic [4:0] height_d, height_q;
  logic [25:0] rest_d, rest_q, trial, next_rest;
  logic [23:0] root_d, root_q;
  logic [31:0] inverse_d, inverse_q;
  logic bit_set;

  always_comb begin
    state_d = state_q;
    left_d = left_q;
    radicand_d = radicand_q;
    height_d = height_q;
    rest_d = rest_q;
    root_d = root_q;
    inverse_d = inverse_q;
    trial = '0;
    next_rest = '0;
    bit_set = 1'b0;
    unique case (state_q)
      StVariance: begin
        state_d = StRaise;
        radicand_d = 48'(all_squares_q - squared_sum_q) + 48'(epsilon_i);
      end
      StRaise: begin
        state_d  = StRoot;
        left_d   = RootBits;
        rest_d   = '0;
        root_d   = '0;
        height_d = '0;
        for (int step = 4; step >= 0; step--) begin
          if ((radicand_d >> (48 - (2 << step))) == '0) begin
            radicand_d = radicand_d << (2 << step);
            height_d[step] = 1'b1;
          end
        end
      end
      StRoot: begin
        trial = {root_q, 2'b01};
        next_rest = {rest_q[23:0], radicand_q[47:46]};
        bit_set = next_rest >= trial;
        radicand_d = radicand_q << 2;
        rest_d = bit_set ? next_rest - trial : next_rest;
        root_d = {root_q[22:0], bit_set};
        left_d = left_q - 6'd1;
        if (left_q == 6'd1) begin
          state_d = StQuotient;
          left_d  = QuotientBits;
          rest_d  = FirstRemainder;
        end
      end
      StQuotient: begin
        trial = {2'b00, root_q};
        next_rest = {rest_q[24:0], 1'b0};
        bit_set = next_rest >= trial;
        rest_d = bit_set ? next_rest - trial : next_rest;
        inverse_d = {inverse_q[30:0], bit_set};
        left_d = left_q - 6'd1;
        if (left_q == 6'd1) state_d = StIdle;
      end
      default: state_d = StIdle;
    endcase
    if (start_i) state_d = StVariance;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StIdle;
    end else begin
      state_q <= state_d;
    end
  end

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      all_squares_q <= 40'(count_i) * 40'(squares_i);
      squared_sum_q <= 40'(sum_i) * 40'(sum_i);
    end
    if (state_q != StIdle) begin
      left_q <= left_d;
      radicand_q <= radicand_d;
      height_q <= height_d;
      rest_q <= rest_d;
      root_q <= root_d;
      inverse_q <= inverse_d;
    end
  end

  assign inverse_o = inverse_q;
  assign places_o  = 6'd34 - 6'(height_q);
endmodule
