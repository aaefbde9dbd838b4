// One lane's source: the element of the memory that the job reads, without its zero point, reduced
// over the window. A product, minimum or maximum is there with its second operand; of a sum each
// operand stands for itself.
// Latency: an element that is on its memory's output in cycle t is in `value_o` in cycle t+1,
// together with all earlier ones of its window. Backpressure: none.
module npu_vector_reduce (
  input logic clk_i,

  input logic                           valid_i,
  input npu_vector_pkg::step_t          step_i,
  input npu_vector_pkg::source_e        source_i,
  input logic signed             [ 7:0] a_zero_point_i,
  input logic signed             [ 7:0] b_zero_point_i,
  input logic                    [31:0] par_i,
  input logic                    [31:0] acc_i,
  input logic signed             [ 7:0] act_i,

  output logic [31:0] value_o
);
  localparam logic signed [31:0] Lowest = -32'sd128;  // of an empty maximum

  logic signed [31:0] value_d, value_q, element;
  logic signed [17:0] product;
  logic unused_step;

  always_comb begin
    element = '0;
    product = '0;
    value_d = value_q;
    if (valid_i) begin
      unique case (source_i)
        npu_vector_pkg::SourceAcc: value_d = acc_i;
        npu_vector_pkg::SourceMax: begin
          element = step_i.in_range ? 32'(act_i) : Lowest;
          value_d = (step_i.first || element > value_q) ? element : value_q;
        end
        npu_vector_pkg::SourceSum: begin
          element = step_i.in_range ? 32'(act_i) - 32'(a_zero_point_i) : '0;
          value_d = step_i.first ? element : value_q + element;
        end
        default: begin  // two tensors
          element = 32'(act_i) - (step_i.first ? 32'(a_zero_point_i) : 32'(b_zero_point_i));
          value_d = element;
          if (!step_i.first && source_i == npu_vector_pkg::SourceProduct) begin
            product = 18'(signed'(value_q[8:0])) * 18'(signed'(element[8:0]));
            value_d = 32'(product);
          end else if (!step_i.first && source_i == npu_vector_pkg::SourceLesser) begin
            value_d = (element < value_q) ? element : value_q;
          end else if (!step_i.first && source_i == npu_vector_pkg::SourceGreater) begin
            value_d = (element > value_q) ? element : value_q;
          end
        end
      endcase
      if (step_i.param) value_d = par_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (valid_i) value_q <= value_d;
  end

  assign value_o = value_q;
  assign unused_step = ^{
    step_i.index, step_i.last, step_i.last_block, step_i.final_step, step_i.dst_row
  };
endmodule
