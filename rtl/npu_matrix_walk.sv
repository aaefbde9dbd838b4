// Purpose: address generator of the matrix engine. For each output block, kernel row, kernel column
// and input block (one weight tile) it walks all output pixels, or for `wide` all input columns that
// they use, and issues one activation row a cycle. Coordinates outside the input are padding.
// Latency: `start_i` in cycle 1, first column in cycle 1 + LANES (conv) or 1 + DEPTHWISE_TAPS
// (dwconv), when the first weight tile has been requested. A tile takes at least LANES cycles, in
// which the next one's weights are requested. No multiplier is in use after the first two cycles.
// Backpressure: none.

module npu_matrix_walk (
  input logic clk_i,
  input logic rst_ni,

  input logic                 start_i,  // job_i is stable from now on to the end
  input npu_matrix_pkg::job_t job_i,

  output logic                           valid_o,      // a column is issued
  output logic                           last_o,       // the last one of the instruction
  output logic                           next_tile_o,  // weights of the next tile may be loaded
  output npu_matrix_pkg::column_t        column_o,
  output logic                    [15:0] row_o         // activation row, where not padding
);

  localparam int unsigned CoordWidth = 20;  // signed input row or column of any kernel position
  localparam int unsigned CountWidth = 17;  // streamed columns of one output row
  localparam int unsigned SlotWidth = $clog2(npu_pkg::LANES);
  localparam logic [SlotWidth:0] Lanes = (SlotWidth + 1)'(npu_pkg::LANES);
  localparam logic [SlotWidth:0] Taps = (SlotWidth + 1)'(npu_pkg::DEPTHWISE_TAPS);
  localparam logic [4:0] WideLead = 5'(npu_pkg::DEPTHWISE_TAPS - 1);

  typedef logic signed [CoordWidth-1:0] coord_t;

  // Position of the first column of a tile, or of a loop around tiles.
  typedef struct packed {
    logic [15:0] row;
    coord_t      h;
    coord_t      w;
  } place_t;

  npu_matrix_pkg::job_t job;
  assign job = job_i;

  // ------------------------------------------------------------------------- steps, set up once
  logic [15:0] row_step_q, col_step_q, krow_step_q, kcol_step_q, origin_h_q, origin_w_q;
  logic [CountWidth-1:0] last_col_q;
  place_t origin_q;
  logic setup_q;  // from the cycle after start_i to the one before the first column

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      row_step_q  <= '0;
      col_step_q  <= '0;
      krow_step_q <= '0;
      kcol_step_q <= '0;
      origin_h_q  <= '0;
      origin_w_q  <= '0;
      last_col_q  <= '0;
      origin_q    <= '0;
    end else if (start_i) begin
      row_step_q <= 16'(job.row_step) * job.in_row_stride;
      col_step_q <= 16'(job.col_step) * job.in_col_stride;
      krow_step_q <= 16'(job.krow_step) * job.in_row_stride;
      kcol_step_q <= 16'(job.kcol_step) * job.in_col_stride;
      origin_h_q <= 16'(job.origin_h) * job.in_row_stride;
      origin_w_q <= 16'(job.origin_w) * job.in_col_stride;
      last_col_q  <= CountWidth'(job.out_w - 12'd1) * CountWidth'(job.emit_step)
                     + CountWidth'(job.wide ? WideLead : 5'd0);
    end else if (setup_q) begin
      origin_q.row <= job.in_base + origin_h_q + origin_w_q;
      origin_q.h   <= coord_t'(job.origin_h);
      origin_q.w   <= coord_t'(job.origin_w);
    end
  end

  // --------------------------------------------------------------------------- setup and streaming
  logic setup_d, stream_d, stream_q, gap_d, gap_q;
  logic [SlotWidth:0] wait_d, wait_q;  // setup cycles left
  logic [SlotWidth-1:0] slot_d, slot_q;  // cycles spent on this tile, up to LANES - 1

  // Loops around tiles, and within a tile.
  logic [11:0] outer_d, outer_q, inner_d, inner_q, out_row_d, out_row_q;
  logic [4:0] krow_d, krow_q, kcol_d, kcol_q;
  logic [CountWidth-1:0] col_d, col_q;
  logic [4:0] skip_d, skip_q;  // columns before the next output column
  place_t outer_place_d, outer_place_q, krow_place_d, krow_place_q, kcol_place_d, kcol_place_q;
  place_t tile_place_d, tile_place_q, line_place_d, line_place_q, place_d, place_q;
  logic [15:0] acc_block_d, acc_block_q, acc_row_d, acc_row_q;

  logic last_col, last_row, last_inner, last_kcol, last_krow, last_outer;
  logic plane_done, tile_done, last_tile, final_tile, emit;
  assign last_col   = col_q == last_col_q;
  assign last_row   = out_row_q == job.out_h - 12'd1;
  assign last_inner = inner_q == job.inner - 12'd1;
  assign last_kcol  = kcol_q == job.kernel_w - 5'd1;
  assign last_krow  = krow_q == job.kernel_h - 5'd1;
  assign last_outer = outer_q == job.outer - 12'd1;
  assign final_tile = last_inner && last_kcol && last_krow;
  assign last_tile  = final_tile && last_outer;
  assign plane_done = stream_q && last_col && last_row;
  assign tile_done  = (plane_done || gap_q) && slot_q == SlotWidth'(npu_pkg::LANES - 1);
  assign emit       = skip_q == 5'd0;

  // The tile after this one.
  always_comb begin
    inner_d       = inner_q;
    kcol_d        = kcol_q;
    krow_d        = krow_q;
    outer_d       = outer_q;
    outer_place_d = outer_place_q;
    krow_place_d  = krow_place_q;
    kcol_place_d  = kcol_place_q;
    tile_place_d  = tile_place_q;
    if (setup_q) begin
      inner_d       = '0;
      kcol_d        = '0;
      krow_d        = '0;
      outer_d       = '0;
      outer_place_d = origin_q;
      krow_place_d  = origin_q;
      kcol_place_d  = origin_q;
      tile_place_d  = origin_q;
    end else if (tile_done) begin
      if (!last_inner) begin
        inner_d          = inner_q + 12'd1;
        tile_place_d.row = tile_place_q.row + job.in_block_stride;
      end else begin
        inner_d = '0;
        if (!last_kcol) begin
          kcol_d           = kcol_q + 5'd1;
          kcol_place_d.row = kcol_place_q.row + kcol_step_q;
          kcol_place_d.w   = kcol_place_q.w + coord_t'({1'b0, job.kcol_step});
        end else begin
          kcol_d = '0;
          if (!last_krow) begin
            krow_d           = krow_q + 5'd1;
            krow_place_d.row = krow_place_q.row + krow_step_q;
            krow_place_d.h   = krow_place_q.h + coord_t'({1'b0, job.krow_step});
          end else begin
            krow_d  = '0;
            outer_d = outer_q + 12'd1;
            if (job.depthwise) outer_place_d.row = outer_place_q.row + job.in_block_stride;
            krow_place_d = outer_place_d;
          end
          kcol_place_d = krow_place_d;
        end
        tile_place_d = kcol_place_d;
      end
    end
  end

  // The column after this one.
  always_comb begin
    out_row_d    = out_row_q;
    col_d        = col_q;
    skip_d       = skip_q;
    line_place_d = line_place_q;
    place_d      = place_q;
    if (setup_q || tile_done) begin
      out_row_d    = '0;
      col_d        = '0;
      skip_d       = job.wide ? WideLead : 5'd0;
      line_place_d = tile_place_d;
      place_d      = tile_place_d;
    end else if (stream_q && last_col) begin
      out_row_d        = out_row_q + 12'd1;
      col_d            = '0;
      skip_d           = job.wide ? WideLead : 5'd0;
      line_place_d.row = line_place_q.row + row_step_q;
      line_place_d.h   = line_place_q.h + coord_t'({1'b0, job.row_step});
      place_d          = line_place_d;
    end else if (stream_q) begin
      col_d       = col_q + CountWidth'(1);
      skip_d      = emit ? job.emit_step - 5'd1 : skip_q - 5'd1;
      place_d.row = place_q.row + col_step_q;
      place_d.w   = place_q.w + coord_t'({1'b0, job.col_step});
    end
  end

  // Accumulator rows count up through a tile; the tiles of one block walk the same rows.
  always_comb begin
    acc_block_d = acc_block_q;
    acc_row_d   = acc_row_q;
    if (setup_q) begin
      acc_block_d = job.acc_base;
      acc_row_d   = job.acc_base;
    end else begin
      if (stream_q && emit) acc_row_d = acc_row_q + 16'd1;
      if (tile_done) begin
        if (final_tile) acc_block_d = acc_row_d;
        acc_row_d = acc_block_d;
      end
    end
  end

  always_comb begin
    setup_d  = setup_q;
    wait_d   = wait_q;
    stream_d = stream_q;
    gap_d    = gap_q;
    slot_d   = slot_q;
    if (start_i) begin
      setup_d = 1'b1;
      wait_d  = (job.depthwise ? Taps : Lanes) - (SlotWidth + 1)'(2);
      slot_d  = '0;
    end else if (setup_q) begin
      wait_d = wait_q - (SlotWidth + 1)'(1);
      if (wait_q == '0) begin
        setup_d  = 1'b0;
        stream_d = 1'b1;
      end
    end else begin
      if (slot_q != SlotWidth'(npu_pkg::LANES - 1)) slot_d = slot_q + SlotWidth'(1);
      if (last_o) begin
        stream_d = 1'b0;
      end else if (tile_done) begin
        stream_d = 1'b1;
        gap_d    = 1'b0;
        slot_d   = '0;
      end else if (plane_done) begin
        stream_d = 1'b0;
        gap_d    = 1'b1;
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      setup_q       <= 1'b0;
      wait_q        <= '0;
      stream_q      <= 1'b0;
      gap_q         <= 1'b0;
      slot_q        <= '0;
      outer_q       <= '0;
      inner_q       <= '0;
      krow_q        <= '0;
      kcol_q        <= '0;
      out_row_q     <= '0;
      col_q         <= '0;
      skip_q        <= '0;
      outer_place_q <= '0;
      krow_place_q  <= '0;
      kcol_place_q  <= '0;
      tile_place_q  <= '0;
      line_place_q  <= '0;
      place_q       <= '0;
      acc_block_q   <= '0;
      acc_row_q     <= '0;
    end else begin
      setup_q       <= setup_d;
      wait_q        <= wait_d;
      stream_q      <= stream_d;
      gap_q         <= gap_d;
      slot_q        <= slot_d;
      outer_q       <= outer_d;
      inner_q       <= inner_d;
      krow_q        <= krow_d;
      kcol_q        <= kcol_d;
      out_row_q     <= out_row_d;
      col_q         <= col_d;
      skip_q        <= skip_d;
      outer_place_q <= outer_place_d;
      krow_place_q  <= krow_place_d;
      kcol_place_q  <= kcol_place_d;
      tile_place_q  <= tile_place_d;
      line_place_q  <= line_place_d;
      place_q       <= place_d;
      acc_block_q   <= acc_block_d;
      acc_row_q     <= acc_row_d;
    end
  end

  // ------------------------------------------------------------------------------------- outputs
  assign valid_o = stream_q;
  assign last_o = plane_done && last_tile;
  assign row_o = place_q.row;
  assign column_o.in_range     = place_q.h >= 0 && place_q.h < coord_t'({1'b0, job.in_h}) &&
                               place_q.w >= 0 && place_q.w < coord_t'({1'b0, job.in_w});
  assign column_o.first = col_q == '0 && out_row_q == '0;
  assign column_o.in_last = last_inner;
  assign column_o.out_last = last_outer;
  assign column_o.emit = emit;
  assign column_o.overwrite = !job.accumulate && inner_q == '0 && kcol_q == '0 && krow_q == '0;
  assign column_o.final_tile = final_tile;
  assign column_o.acc_row = acc_row_q;
  assign next_tile_o = stream_q && column_o.first && !last_tile;

  logic unused_job;
  assign unused_job = ^job;

endmodule
