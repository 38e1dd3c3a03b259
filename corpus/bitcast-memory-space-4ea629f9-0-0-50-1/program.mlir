module @jit_loss attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @empty_mesh = <[]> {stablehlo.mesh = {axes = []}}
  func.func public @main(%arg0: tensor<2x1xf32> {mhlo.memory_kind = "device", sdy.sharding = #sdy.sharding<@empty_mesh, [{}, {}]>}) -> (tensor<2x1xf32> {jax.result_info = "result", mhlo.memory_kind = "device"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x2x2x1xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1:3 = stablehlo.while(%iterArg = %c, %iterArg_2 = %arg0, %iterArg_3 = %0) : tensor<i32>, tensor<2x1xf32>, tensor<2x2x2x1xf32>
    cond {
      %c_4 = stablehlo.constant dense<2> : tensor<i32>
      %4 = stablehlo.compare LT, %iterArg, %c_4, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %4 : tensor<i1>
    } do {
      %4:2 = func.call @closed_call(%iterArg_2) : (tensor<2x1xf32>) -> (tensor<2x1xf32>, tensor<2x2x1xf32>)
      %5 = func.call @dynamic_update_index_in_dim(%iterArg_3, %4#1, %iterArg) : (tensor<2x2x2x1xf32>, tensor<2x2x1xf32>, tensor<i32>) -> tensor<2x2x2x1xf32>
      %c_4 = stablehlo.constant dense<1> : tensor<i32>
      %6 = stablehlo.add %iterArg, %c_4 : tensor<i32>
      stablehlo.return %6, %4#0, %5 : tensor<i32>, tensor<2x1xf32>, tensor<2x2x2x1xf32>
    }
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<2x1xf32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %3:3 = stablehlo.while(%iterArg = %1#2, %iterArg_2 = %c_1, %iterArg_3 = %2) : tensor<2x2x2x1xf32>, tensor<i32>, tensor<2x1xf32>
    cond {
      %c_4 = stablehlo.constant dense<2> : tensor<i32>
      %4 = stablehlo.compare LT, %iterArg_2, %c_4, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %4 : tensor<i1>
    } do {
      %c_4 = stablehlo.constant dense<2> : tensor<i32>
      %4 = stablehlo.subtract %c_4, %iterArg_2 : tensor<i32>
      %c_5 = stablehlo.constant dense<1> : tensor<i32>
      %5 = stablehlo.subtract %4, %c_5 : tensor<i32>
      %6 = func.call @dynamic_index_in_dim(%iterArg, %5) : (tensor<2x2x2x1xf32>, tensor<i32>) -> tensor<2x2x1xf32>
      %7 = func.call @closed_call_1(%iterArg_3, %6) : (tensor<2x1xf32>, tensor<2x2x1xf32>) -> tensor<2x1xf32>
      %c_6 = stablehlo.constant dense<1> : tensor<i32>
      %8 = stablehlo.add %iterArg_2, %c_6 : tensor<i32>
      stablehlo.return %iterArg, %8, %7 : tensor<2x2x2x1xf32>, tensor<i32>, tensor<2x1xf32>
    }
    return %3#2 : tensor<2x1xf32>
  }
  func.func private @closed_call(%arg0: tensor<2x1xf32>) -> (tensor<2x1xf32>, tensor<2x2x1xf32>) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<0x2x1xf32>
    %1:2 = call @closed_call_0(%arg0) : (tensor<2x1xf32>) -> (tensor<2x1xf32>, tensor<2x1xf32>)
    %2:2 = call @closed_call_0(%1#0) : (tensor<2x1xf32>) -> (tensor<2x1xf32>, tensor<2x1xf32>)
    %3 = stablehlo.broadcast_in_dim %1#1, dims = [1, 2] : (tensor<2x1xf32>) -> tensor<1x2x1xf32>
    %4 = stablehlo.broadcast_in_dim %2#1, dims = [1, 2] : (tensor<2x1xf32>) -> tensor<1x2x1xf32>
    %5 = stablehlo.concatenate %3, %4, dim = 0 : (tensor<1x2x1xf32>, tensor<1x2x1xf32>) -> tensor<2x2x1xf32>
    %6 = stablehlo.concatenate %0, %5, dim = 0 : (tensor<0x2x1xf32>, tensor<2x2x1xf32>) -> tensor<2x2x1xf32>
    return %2#0, %6 : tensor<2x1xf32>, tensor<2x2x1xf32>
  }
  func.func private @closed_call_0(%arg0: tensor<2x1xf32>) -> (tensor<2x1xf32>, tensor<2x1xf32>) {
    %0 = stablehlo.custom_call @annotate_device_placement(%arg0) {backend_config = "", has_side_effect = true, mhlo.frontend_attributes = {_xla_buffer_placement = "pinned_host"}} : (tensor<2x1xf32>) -> tensor<2x1xf32>
    %1 = stablehlo.sine %arg0 : tensor<2x1xf32>
    return %1, %0 : tensor<2x1xf32>, tensor<2x1xf32>
  }
  func.func private @dynamic_update_index_in_dim(%arg0: tensor<2x2x2x1xf32>, %arg1: tensor<2x2x1xf32>, %arg2: tensor<i32>) -> tensor<2x2x2x1xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2, 3] : (tensor<2x2x1xf32>) -> tensor<1x2x2x1xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0, %c_1 : (tensor<2x2x2x1xf32>, tensor<1x2x2x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x2x2x1xf32>
    return %1 : tensor<2x2x2x1xf32>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<2x2x2x1xf32>, %arg1: tensor<i32>) -> tensor<2x2x1xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, %c_1, sizes = [1, 2, 2, 1] : (tensor<2x2x2x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x2x2x1xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x2x2x1xf32>) -> tensor<2x2x1xf32>
    return %1 : tensor<2x2x1xf32>
  }
  func.func private @closed_call_1(%arg0: tensor<2x1xf32>, %arg1: tensor<2x2x1xf32>) -> tensor<2x1xf32> {
    %0 = stablehlo.slice %arg1 [0:2, 0:2, 0:1] : (tensor<2x2x1xf32>) -> tensor<2x2x1xf32>
    %1 = stablehlo.slice %arg1 [2:2, 0:2, 0:1] : (tensor<2x2x1xf32>) -> tensor<0x2x1xf32>
    %2 = stablehlo.slice %0 [1:2, 0:2, 0:1] : (tensor<2x2x1xf32>) -> tensor<1x2x1xf32>
    %3 = stablehlo.reshape %2 : (tensor<1x2x1xf32>) -> tensor<2x1xf32>
    %4 = call @closed_call_2(%arg0, %3) : (tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x1xf32>
    %5 = stablehlo.slice %0 [0:1, 0:2, 0:1] : (tensor<2x2x1xf32>) -> tensor<1x2x1xf32>
    %6 = stablehlo.reshape %5 : (tensor<1x2x1xf32>) -> tensor<2x1xf32>
    %7 = call @closed_call_2(%4, %6) : (tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x1xf32>
    return %7 : tensor<2x1xf32>
  }
  func.func private @closed_call_2(%arg0: tensor<2x1xf32>, %arg1: tensor<2x1xf32>) -> tensor<2x1xf32> {
    %0:2 = stablehlo.optimization_barrier %arg1, %arg0 : tensor<2x1xf32>, tensor<2x1xf32>
    %1 = stablehlo.custom_call @annotate_device_placement(%0#0) {backend_config = "", has_side_effect = true, mhlo.frontend_attributes = {_xla_buffer_placement = "device"}} : (tensor<2x1xf32>) -> tensor<2x1xf32>
    %2 = stablehlo.cosine %1 : tensor<2x1xf32>
    %3 = stablehlo.multiply %0#1, %2 : tensor<2x1xf32>
    return %3 : tensor<2x1xf32>
  }
}
