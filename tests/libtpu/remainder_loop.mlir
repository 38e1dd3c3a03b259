module @jit_loss attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @empty_mesh = <[]> {stablehlo.mesh = {axes = []}}
  func.func public @main(%arg0: tensor<f32> {mhlo.memory_kind = "device", sdy.sharding = #sdy.sharding<@empty_mesh, []>}) -> (tensor<f32> {jax.result_info = "result", mhlo.memory_kind = "device"}) {
    %0 = call @closed_call(%arg0) {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<f32>) -> tensor<4xf32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %1:2 = stablehlo.optimization_barrier %0, %cst : tensor<4xf32>, tensor<f32>
    %2 = stablehlo.slice %1#0 [0:3] {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<4xf32>) -> tensor<3xf32>
    %3 = stablehlo.slice %1#0 [3:4] {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<4xf32>) -> tensor<1xf32>
    %4 = stablehlo.reshape %2 {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<3xf32>) -> tensor<1x3xf32>
    %cst_0 = stablehlo.constant {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} dense<0.000000e+00> : tensor<f32>
    %5 = stablehlo.broadcast_in_dim %cst_0, dims = [] {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<f32>) -> tensor<1x3xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %6:3 = stablehlo.while(%iterArg = %4, %iterArg_2 = %c, %iterArg_3 = %5) : tensor<1x3xf32>, tensor<i32>, tensor<1x3xf32> attributes {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}}
    cond {
      %c_4 = stablehlo.constant dense<1> : tensor<i32>
      %20 = stablehlo.compare LT, %iterArg_2, %c_4, SIGNED {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %20 : tensor<i1>
    } do {
      %20 = func.call @dynamic_index_in_dim(%iterArg, %iterArg_2) {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<1x3xf32>, tensor<i32>) -> tensor<3xf32>
      %21 = stablehlo.slice %20 [0:1] {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<3xf32>) -> tensor<1xf32>
      %22 = stablehlo.reshape %21 {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<1xf32>) -> tensor<f32>
      %23 = func.call @closed_call_1(%22) {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<f32>) -> tensor<f32>
      %24 = stablehlo.slice %20 [1:2] {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<3xf32>) -> tensor<1xf32>
      %25 = stablehlo.reshape %24 {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<1xf32>) -> tensor<f32>
      %26 = func.call @closed_call_1(%25) {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<f32>) -> tensor<f32>
      %27 = stablehlo.slice %20 [2:3] {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<3xf32>) -> tensor<1xf32>
      %28 = stablehlo.reshape %27 {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<1xf32>) -> tensor<f32>
      %29 = func.call @closed_call_1(%28) {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<f32>) -> tensor<f32>
      %30 = stablehlo.broadcast_in_dim %23, dims = [] {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<f32>) -> tensor<1xf32>
      %31 = stablehlo.broadcast_in_dim %26, dims = [] {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<f32>) -> tensor<1xf32>
      %32 = stablehlo.broadcast_in_dim %29, dims = [] {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<f32>) -> tensor<1xf32>
      %33 = stablehlo.concatenate %30, %31, %32, dim = 0 {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<3xf32>
      %34 = func.call @dynamic_update_index_in_dim_2(%iterArg_3, %33, %iterArg_2) {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<1x3xf32>, tensor<3xf32>, tensor<i32>) -> tensor<1x3xf32>
      %c_4 = stablehlo.constant dense<1> : tensor<i32>
      %35 = stablehlo.add %iterArg_2, %c_4 {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : tensor<i32>
      stablehlo.return %iterArg, %35, %34 : tensor<1x3xf32>, tensor<i32>, tensor<1x3xf32>
    }
    %7 = stablehlo.reshape %6#2 {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<1x3xf32>) -> tensor<3xf32>
    %8 = stablehlo.slice %3 [0:1] {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<1xf32>) -> tensor<1xf32>
    %9 = stablehlo.reshape %8 {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<1xf32>) -> tensor<f32>
    %10 = call @closed_call_1(%9) {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<f32>) -> tensor<f32>
    %11 = stablehlo.broadcast_in_dim %10, dims = [] {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<f32>) -> tensor<1xf32>
    %12 = stablehlo.concatenate %7, %11, dim = 0 {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<3xf32>, tensor<1xf32>) -> tensor<4xf32>
    %13 = stablehlo.slice %12 [0:1] {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<4xf32>) -> tensor<1xf32>
    %14 = stablehlo.slice %12 [1:4] {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<4xf32>) -> tensor<3xf32>
    %15 = stablehlo.reshape %14 {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<3xf32>) -> tensor<1x3xf32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %16:3 = stablehlo.while(%iterArg = %15, %iterArg_2 = %c_1, %iterArg_3 = %1#1) : tensor<1x3xf32>, tensor<i32>, tensor<f32> attributes {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}}
    cond {
      %c_4 = stablehlo.constant dense<1> : tensor<i32>
      %20 = stablehlo.compare LT, %iterArg_2, %c_4, SIGNED {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %20 : tensor<i1>
    } do {
      %c_4 = stablehlo.constant dense<1> : tensor<i32>
      %20 = stablehlo.subtract %c_4, %iterArg_2 {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : tensor<i32>
      %c_5 = stablehlo.constant dense<1> : tensor<i32>
      %21 = stablehlo.subtract %20, %c_5 {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : tensor<i32>
      %22 = func.call @dynamic_index_in_dim_3(%iterArg, %21) {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<1x3xf32>, tensor<i32>) -> tensor<3xf32>
      %23 = stablehlo.slice %22 [2:3] {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<3xf32>) -> tensor<1xf32>
      %24 = stablehlo.reshape %23 {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<1xf32>) -> tensor<f32>
      %25 = func.call @closed_call_4(%iterArg_3, %24) {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<f32>, tensor<f32>) -> tensor<f32>
      %26 = stablehlo.slice %22 [1:2] {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<3xf32>) -> tensor<1xf32>
      %27 = stablehlo.reshape %26 {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<1xf32>) -> tensor<f32>
      %28 = func.call @closed_call_4(%25, %27) {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<f32>, tensor<f32>) -> tensor<f32>
      %29 = stablehlo.slice %22 [0:1] {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<3xf32>) -> tensor<1xf32>
      %30 = stablehlo.reshape %29 {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<1xf32>) -> tensor<f32>
      %31 = func.call @closed_call_4(%28, %30) {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<f32>, tensor<f32>) -> tensor<f32>
      %c_6 = stablehlo.constant dense<1> : tensor<i32>
      %32 = stablehlo.add %iterArg_2, %c_6 {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : tensor<i32>
      stablehlo.return %iterArg, %32, %31 : tensor<1x3xf32>, tensor<i32>, tensor<f32>
    }
    %17 = stablehlo.slice %13 [0:1] {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<1xf32>) -> tensor<1xf32>
    %18 = stablehlo.reshape %17 {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<1xf32>) -> tensor<f32>
    %19 = call @closed_call_4(%16#2, %18) {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<f32>, tensor<f32>) -> tensor<f32>
    return %19 : tensor<f32>
  }
  func.func private @closed_call(%arg0: tensor<f32>) -> tensor<4xf32> {
    %cst = stablehlo.constant {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<f32>) -> tensor<1x3xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1:3 = stablehlo.while(%iterArg = %c, %iterArg_0 = %arg0, %iterArg_1 = %0) : tensor<i32>, tensor<f32>, tensor<1x3xf32> attributes {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}}
    cond {
      %c_2 = stablehlo.constant dense<1> : tensor<i32>
      %6 = stablehlo.compare LT, %iterArg, %c_2, SIGNED {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %6 : tensor<i1>
    } do {
      %6:2 = func.call @closed_call_0(%iterArg_0) {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<f32>) -> (tensor<f32>, tensor<f32>)
      %7:2 = func.call @closed_call_0(%6#0) {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<f32>) -> (tensor<f32>, tensor<f32>)
      %8:2 = func.call @closed_call_0(%7#0) {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<f32>) -> (tensor<f32>, tensor<f32>)
      %9 = stablehlo.broadcast_in_dim %6#1, dims = [] {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<f32>) -> tensor<1xf32>
      %10 = stablehlo.broadcast_in_dim %7#1, dims = [] {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<f32>) -> tensor<1xf32>
      %11 = stablehlo.broadcast_in_dim %8#1, dims = [] {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<f32>) -> tensor<1xf32>
      %12 = stablehlo.concatenate %9, %10, %11, dim = 0 {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<3xf32>
      %13 = func.call @dynamic_update_index_in_dim(%iterArg_1, %12, %iterArg) {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<1x3xf32>, tensor<3xf32>, tensor<i32>) -> tensor<1x3xf32>
      %c_2 = stablehlo.constant dense<1> : tensor<i32>
      %14 = stablehlo.add %iterArg, %c_2 {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : tensor<i32>
      stablehlo.return %14, %8#0, %13 : tensor<i32>, tensor<f32>, tensor<1x3xf32>
    }
    %2 = stablehlo.reshape %1#2 {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<1x3xf32>) -> tensor<3xf32>
    %3:2 = call @closed_call_0(%1#1) {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<f32>) -> (tensor<f32>, tensor<f32>)
    %4 = stablehlo.broadcast_in_dim %3#1, dims = [] {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<f32>) -> tensor<1xf32>
    %5 = stablehlo.concatenate %2, %4, dim = 0 {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<3xf32>, tensor<1xf32>) -> tensor<4xf32>
    return %5 : tensor<4xf32>
  }
  func.func private @closed_call_0(%arg0: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
    %0 = stablehlo.custom_call @annotate_device_placement(%arg0) {backend_config = "", has_side_effect = true, mhlo.frontend_attributes = {_xla_buffer_placement = "pinned_host"}} : (tensor<f32>) -> tensor<f32>
    %1 = stablehlo.sine %arg0 {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : tensor<f32>
    return %1, %0 : tensor<f32>, tensor<f32>
  }
  func.func private @dynamic_update_index_in_dim(%arg0: tensor<1x3xf32>, %arg1: tensor<3xf32>, %arg2: tensor<i32>) -> tensor<1x3xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1] {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<3xf32>) -> tensor<1x3xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<1x3xf32>, tensor<1x3xf32>, tensor<i32>, tensor<i32>) -> tensor<1x3xf32>
    return %1 : tensor<1x3xf32>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<1x3xf32>, %arg1: tensor<i32>) -> tensor<3xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, sizes = [1, 3] {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<1x3xf32>, tensor<i32>, tensor<i32>) -> tensor<1x3xf32>
    %1 = stablehlo.reshape %0 {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<1x3xf32>) -> tensor<3xf32>
    return %1 : tensor<3xf32>
  }
  func.func private @closed_call_1(%arg0: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.custom_call @annotate_device_placement(%arg0) {backend_config = "", has_side_effect = true, mhlo.frontend_attributes = {_xla_buffer_placement = "device", "skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<f32>) -> tensor<f32>
    %1 = stablehlo.cosine %0 {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : tensor<f32>
    return %1 : tensor<f32>
  }
  func.func private @dynamic_update_index_in_dim_2(%arg0: tensor<1x3xf32>, %arg1: tensor<3xf32>, %arg2: tensor<i32>) -> tensor<1x3xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1] {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<3xf32>) -> tensor<1x3xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<1x3xf32>, tensor<1x3xf32>, tensor<i32>, tensor<i32>) -> tensor<1x3xf32>
    return %1 : tensor<1x3xf32>
  }
  func.func private @dynamic_index_in_dim_3(%arg0: tensor<1x3xf32>, %arg1: tensor<i32>) -> tensor<3xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, sizes = [1, 3] {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<1x3xf32>, tensor<i32>, tensor<i32>) -> tensor<1x3xf32>
    %1 = stablehlo.reshape %0 {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<1x3xf32>) -> tensor<3xf32>
    return %1 : tensor<3xf32>
  }
  func.func private @closed_call_4(%arg0: tensor<f32>, %arg1: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.multiply %arg0, %arg1 {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : tensor<f32>
    return %0 : tensor<f32>
  }
}
