module @jit_loss attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @empty_mesh = <[]> {stablehlo.mesh = {axes = []}}
  func.func public @main(%arg0: tensor<1x4xf32> {mhlo.memory_kind = "device", sdy.sharding = #sdy.sharding<@empty_mesh, [{}, {}]>}) -> (tensor<1x4xf32> {jax.result_info = "result", mhlo.memory_kind = "device"}) {
    %0 = call @closed_call(%arg0) : (tensor<1x4xf32>) -> tensor<6x1x4xf32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x4xf32>
    %2:3 = stablehlo.optimization_barrier %0, %arg0, %1 : tensor<6x1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>
    %3 = stablehlo.reshape %2#0 : (tensor<6x1x4xf32>) -> tensor<2x3x1x4xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %4:3 = stablehlo.while(%iterArg = %3, %iterArg_1 = %c, %iterArg_2 = %2#1) : tensor<2x3x1x4xf32>, tensor<i32>, tensor<1x4xf32>
    cond {
      %c_3 = stablehlo.constant dense<2> : tensor<i32>
      %8 = stablehlo.compare LT, %iterArg_1, %c_3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %8 : tensor<i1>
    } do {
      %8 = func.call @dynamic_index_in_dim(%iterArg, %iterArg_1) : (tensor<2x3x1x4xf32>, tensor<i32>) -> tensor<3x1x4xf32>
      %9 = stablehlo.slice %8 [0:1, 0:1, 0:4] : (tensor<3x1x4xf32>) -> tensor<1x1x4xf32>
      %10 = stablehlo.reshape %9 : (tensor<1x1x4xf32>) -> tensor<1x4xf32>
      %11 = func.call @closed_call_1(%iterArg_2, %10) : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
      %12 = stablehlo.slice %8 [1:2, 0:1, 0:4] : (tensor<3x1x4xf32>) -> tensor<1x1x4xf32>
      %13 = stablehlo.reshape %12 : (tensor<1x1x4xf32>) -> tensor<1x4xf32>
      %14 = func.call @closed_call_1(%11, %13) : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
      %15 = stablehlo.slice %8 [2:3, 0:1, 0:4] : (tensor<3x1x4xf32>) -> tensor<1x1x4xf32>
      %16 = stablehlo.reshape %15 : (tensor<1x1x4xf32>) -> tensor<1x4xf32>
      %17 = func.call @closed_call_1(%14, %16) : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
      %c_3 = stablehlo.constant dense<1> : tensor<i32>
      %18 = stablehlo.add %iterArg_1, %c_3 : tensor<i32>
      stablehlo.return %iterArg, %18, %17 : tensor<2x3x1x4xf32>, tensor<i32>, tensor<1x4xf32>
    }
    %5 = stablehlo.cosine %4#2 : tensor<1x4xf32>
    %6 = stablehlo.multiply %2#2, %5 : tensor<1x4xf32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %7:2 = stablehlo.while(%iterArg = %c_0, %iterArg_1 = %6) : tensor<i32>, tensor<1x4xf32>
    cond {
      %c_2 = stablehlo.constant dense<2> : tensor<i32>
      %8 = stablehlo.compare LT, %iterArg, %c_2, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %8 : tensor<i1>
    } do {
      %c_2 = stablehlo.constant dense<2> : tensor<i32>
      %8 = stablehlo.subtract %c_2, %iterArg : tensor<i32>
      %c_3 = stablehlo.constant dense<1> : tensor<i32>
      %9 = stablehlo.subtract %8, %c_3 : tensor<i32>
      %10 = func.call @closed_call_2(%iterArg_1) : (tensor<1x4xf32>) -> tensor<1x4xf32>
      %11 = func.call @closed_call_2(%10) : (tensor<1x4xf32>) -> tensor<1x4xf32>
      %12 = func.call @closed_call_2(%11) : (tensor<1x4xf32>) -> tensor<1x4xf32>
      %c_4 = stablehlo.constant dense<1> : tensor<i32>
      %13 = stablehlo.add %iterArg, %c_4 : tensor<i32>
      stablehlo.return %13, %12 : tensor<i32>, tensor<1x4xf32>
    }
    return %7#1 : tensor<1x4xf32>
  }
  func.func private @closed_call(%arg0: tensor<1x4xf32>) -> tensor<6x1x4xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x3x1x4xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1:3 = stablehlo.while(%iterArg = %c, %iterArg_0 = %arg0, %iterArg_1 = %0) : tensor<i32>, tensor<1x4xf32>, tensor<2x3x1x4xf32>
    cond {
      %c_2 = stablehlo.constant dense<2> : tensor<i32>
      %3 = stablehlo.compare LT, %iterArg, %c_2, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %3 : tensor<i1>
    } do {
      %3:2 = func.call @closed_call_0(%iterArg_0) : (tensor<1x4xf32>) -> (tensor<1x4xf32>, tensor<1x4xf32>)
      %4:2 = func.call @closed_call_0(%3#0) : (tensor<1x4xf32>) -> (tensor<1x4xf32>, tensor<1x4xf32>)
      %5:2 = func.call @closed_call_0(%4#0) : (tensor<1x4xf32>) -> (tensor<1x4xf32>, tensor<1x4xf32>)
      %6 = stablehlo.broadcast_in_dim %3#1, dims = [1, 2] : (tensor<1x4xf32>) -> tensor<1x1x4xf32>
      %7 = stablehlo.broadcast_in_dim %4#1, dims = [1, 2] : (tensor<1x4xf32>) -> tensor<1x1x4xf32>
      %8 = stablehlo.broadcast_in_dim %5#1, dims = [1, 2] : (tensor<1x4xf32>) -> tensor<1x1x4xf32>
      %9 = stablehlo.concatenate %6, %7, %8, dim = 0 : (tensor<1x1x4xf32>, tensor<1x1x4xf32>, tensor<1x1x4xf32>) -> tensor<3x1x4xf32>
      %10 = func.call @dynamic_update_index_in_dim(%iterArg_1, %9, %iterArg) : (tensor<2x3x1x4xf32>, tensor<3x1x4xf32>, tensor<i32>) -> tensor<2x3x1x4xf32>
      %c_2 = stablehlo.constant dense<1> : tensor<i32>
      %11 = stablehlo.add %iterArg, %c_2 : tensor<i32>
      stablehlo.return %11, %5#0, %10 : tensor<i32>, tensor<1x4xf32>, tensor<2x3x1x4xf32>
    }
    %2 = stablehlo.reshape %1#2 : (tensor<2x3x1x4xf32>) -> tensor<6x1x4xf32>
    return %2 : tensor<6x1x4xf32>
  }
  func.func private @closed_call_0(%arg0: tensor<1x4xf32>) -> (tensor<1x4xf32>, tensor<1x4xf32>) {
    %0 = stablehlo.custom_call @annotate_device_placement(%arg0) {backend_config = "", has_side_effect = true, mhlo.frontend_attributes = {_xla_buffer_placement = "pinned_host"}} : (tensor<1x4xf32>) -> tensor<1x4xf32>
    return %arg0, %0 : tensor<1x4xf32>, tensor<1x4xf32>
  }
  func.func private @dynamic_update_index_in_dim(%arg0: tensor<2x3x1x4xf32>, %arg1: tensor<3x1x4xf32>, %arg2: tensor<i32>) -> tensor<2x3x1x4xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2, 3] : (tensor<3x1x4xf32>) -> tensor<1x3x1x4xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0, %c_1 : (tensor<2x3x1x4xf32>, tensor<1x3x1x4xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x3x1x4xf32>
    return %1 : tensor<2x3x1x4xf32>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<2x3x1x4xf32>, %arg1: tensor<i32>) -> tensor<3x1x4xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, %c_1, sizes = [1, 3, 1, 4] : (tensor<2x3x1x4xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x3x1x4xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x3x1x4xf32>) -> tensor<3x1x4xf32>
    return %1 : tensor<3x1x4xf32>
  }
  func.func private @closed_call_1(%arg0: tensor<1x4xf32>, %arg1: tensor<1x4xf32>) -> tensor<1x4xf32> {
    %0 = stablehlo.custom_call @annotate_device_placement(%arg1) {backend_config = "", has_side_effect = true, mhlo.frontend_attributes = {_xla_buffer_placement = "device"}} : (tensor<1x4xf32>) -> tensor<1x4xf32>
    return %0 : tensor<1x4xf32>
  }
  func.func private @closed_call_2(%arg0: tensor<1x4xf32>) -> tensor<1x4xf32> {
    return %arg0 : tensor<1x4xf32>
  }
}
