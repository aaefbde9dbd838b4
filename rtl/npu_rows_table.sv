// One lane of LOOKUP and SOFTMAX: an element picks a word of its lane's table memory. LOOKUP writes
// the word's low byte. SOFTMAX takes the word of maximum - element, rounded to fewer bits for the
// sum of all, and times the sum's reciprocal for the result.
// Latency: an element that is on its memory's output in stage 2 asks for its word in stage 3, has
// its part of the sum (or its product) in stage 5 and its byte in stage 6. Backpressure: none.
module npu_rows_table (
  input logic clk_i,

  input logic is_softmax_i,

  input  logic              index_en_i,  // stage 2
  input  logic signed [7:0] act_i,
  input  logic signed [7:0] max_i,
  output logic        [7:0] index_o,     // stage 3

  input  logic               part_en_i,   // stage 4: the word belongs to a sum,
  input  logic               value_en_i,  // or to a result
  input  logic               keep_i,      // low: a pad lane
  input  logic signed [31:0] word_i,
  input  logic        [30:0] scale_i,     // Q0.31
  output logic signed [31:0] part_o,      // stage 5

  input  logic       byte_en_i,    // stage 5
  input  logic       byte_keep_i,
  input  logic [5:0] places_i,     // that a product is divided by, 4 to 35
  output logic [7:0] byte_o        // stage 6
);
  localparam int unsigned SumShift = 12;  // Q0.31 to Q12.19

  logic [7:0] index_d, index_q;
  logic [31:0] value_d, value_q, share;
  logic signed [63:0] product;
  logic signed [32:0] raised;
  logic [7:0] byte_d, byte_q;

  assign index_d = is_softmax_i ? max_i - act_i : act_i ^ 8'h80;

  always_comb begin
    raised  = '0;
    product = '0;
    value_d = word_i;
    if (part_en_i) begin
      // Ties away from zero: half is added, one less to a negative word.
      raised  = 33'(word_i) + (33'sd1 <<< (SumShift - 1)) - $signed({32'b0, word_i[31]});
      value_d = keep_i ? 32'(raised >>> SumShift) : '0;
    end else if (value_en_i && is_softmax_i) begin
      // The doubling high multiply: a scale that is not negative never saturates it.
      product = 64'(word_i) * $signed({33'b0, scale_i}) + (64'sd1 <<< 30);
      value_d = 32'(product >>> 31);
    end
  end

  // A product divided by a power of two and rounded is a share in 256ths; one of 1 or more becomes
  // 127, one below 0 the zero point -128, and so does one beyond 31 places, which is less than half.
  always_comb begin
    share  = '0;
    byte_d = '0;
    if (byte_en_i && byte_keep_i && is_softmax_i) begin
      share = (value_q + (32'd1 << (places_i[4:0] - 5'd1))) >> places_i[4:0];
      if (value_q[31] || places_i[5]) byte_d = 8'h80;
      else byte_d = (share[31:8] != '0) ? 8'h7f : share[7:0] ^ 8'h80;
    end else if (byte_en_i && byte_keep_i) begin
      byte_d = value_q[7:0];
    end
  end

  always_ff @(posedge clk_i) begin
    if (index_en_i) index_q <= index_d;
    if (part_en_i || value_en_i) value_q <= value_d;
    if (byte_en_i) byte_q <= byte_d;
  end

  assign index_o = index_q;
  assign part_o  = value_q;
  assign byte_o  = byte_q;
endmodule
