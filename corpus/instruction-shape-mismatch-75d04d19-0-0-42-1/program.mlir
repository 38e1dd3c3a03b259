module @jit_loss attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @empty_mesh = <[]> {stablehlo.mesh = {axes = []}}
  func.func public @main(%arg0: tensor<f32> {mhlo.memory_kind = "device", sdy.sharding = #sdy.sharding<@empty_mesh, []>}) -> (tensor<f32> {jax.result_info = "result", mhlo.memory_kind = "device"}) {
    %0 = call @closed_call(%arg0) {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<f32>) -> tensor<1xf32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %1:3 = stablehlo.optimization_barrier %0, %arg0, %cst : tensor<1xf32>, tensor<f32>, tensor<f32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %2:3 = stablehlo.while(%iterArg = %1#0, %iterArg_1 = %c, %iterArg_2 = %1#1) : tensor<1xf32>, tensor<i32>, tensor<f32> attributes {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}}
    cond {
      %c_3 = stablehlo.constant dense<1> : tensor<i32>
      %6 = stablehlo.compare LT, %iterArg_1, %c_3, SIGNED {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %6 : tensor<i1>
    } do {
      %6 = func.call @dynamic_index_in_dim(%iterArg, %iterArg_1) {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<1xf32>, tensor<i32>) -> tensor<f32>
      %7 = func.call @closed_call_1(%iterArg_2, %6) {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<f32>, tensor<f32>) -> tensor<f32>
      %c_3 = stablehlo.constant dense<1> : tensor<i32>
      %8 = stablehlo.add %iterArg_1, %c_3 {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : tensor<i32>
      stablehlo.return %iterArg, %8, %7 : tensor<1xf32>, tensor<i32>, tensor<f32>
    }
    %3 = stablehlo.cosine %2#2 : tensor<f32>
    %4 = stablehlo.multiply %1#2, %3 : tensor<f32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %5:2 = stablehlo.while(%iterArg = %c_0, %iterArg_1 = %4) : tensor<i32>, tensor<f32> attributes {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}}
    cond {
      %c_2 = stablehlo.constant dense<1> : tensor<i32>
      %6 = stablehlo.compare LT, %iterArg, %c_2, SIGNED {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %6 : tensor<i1>
    } do {
      %c_2 = stablehlo.constant dense<1> : tensor<i32>
      %6 = stablehlo.subtract %c_2, %iterArg {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : tensor<i32>
      %c_3 = stablehlo.constant dense<1> : tensor<i32>
      %7 = stablehlo.subtract %6, %c_3 {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : tensor<i32>
      %8 = func.call @closed_call_2(%iterArg_1) {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<f32>) -> tensor<f32>
      %c_4 = stablehlo.constant dense<1> : tensor<i32>
      %9 = stablehlo.add %iterArg, %c_4 {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : tensor<i32>
      stablehlo.return %9, %8 : tensor<i32>, tensor<f32>
    }
    return %5#1 : tensor<f32>
  }
  func.func private @closed_call(%arg0: tensor<f32>) -> tensor<1xf32> {
    %cst = stablehlo.constant {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<f32>) -> tensor<1xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1:3 = stablehlo.while(%iterArg = %c, %iterArg_0 = %arg0, %iterArg_1 = %0) : tensor<i32>, tensor<f32>, tensor<1xf32> attributes {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}}
    cond {
      %c_2 = stablehlo.constant dense<1> : tensor<i32>
      %2 = stablehlo.compare LT, %iterArg, %c_2, SIGNED {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    } do {
      %2:2 = func.call @closed_call_0(%iterArg_0) {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<f32>) -> (tensor<f32>, tensor<f32>)
      %3 = func.call @dynamic_update_index_in_dim(%iterArg_1, %2#1, %iterArg) {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<1xf32>, tensor<f32>, tensor<i32>) -> tensor<1xf32>
      %c_2 = stablehlo.constant dense<1> : tensor<i32>
      %4 = stablehlo.add %iterArg, %c_2 {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : tensor<i32>
      stablehlo.return %4, %2#0, %3 : tensor<i32>, tensor<f32>, tensor<1xf32>
    }
    return %1#2 : tensor<1xf32>
  }
  func.func private @closed_call_0(%arg0: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
    %0 = stablehlo.custom_call @annotate_device_placement(%arg0) {backend_config = "", has_side_effect = true, mhlo.frontend_attributes = {_xla_buffer_placement = "pinned_host"}} : (tensor<f32>) -> tensor<f32>
    return %arg0, %0 : tensor<f32>, tensor<f32>
  }
  func.func private @dynamic_update_index_in_dim(%arg0: tensor<1xf32>, %arg1: tensor<f32>, %arg2: tensor<i32>) -> tensor<1xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [] {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<f32>) -> tensor<1xf32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2 {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<1xf32>, tensor<1xf32>, tensor<i32>) -> tensor<1xf32>
    return %1 : tensor<1xf32>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<1xf32>, %arg1: tensor<i32>) -> tensor<f32> {
    %0 = stablehlo.dynamic_slice %arg0, %arg1, sizes = [1] {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<1xf32>, tensor<i32>) -> tensor<1xf32>
    %1 = stablehlo.reshape %0 {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<1xf32>) -> tensor<f32>
    return %1 : tensor<f32>
  }
  func.func private @closed_call_1(%arg0: tensor<f32>, %arg1: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.custom_call @annotate_device_placement(%arg1) {backend_config = "", has_side_effect = true, mhlo.frontend_attributes = {_xla_buffer_placement = "device", "skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<f32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
  func.func private @closed_call_2(%arg0: tensor<f32>) -> tensor<f32> {
    return %arg0 : tensor<f32>
  }
}
