module @module attributes {} {
  "func.func"() ({
  ^bb0(%0: tensor<2x2xf32>):
    %1 = "stablehlo.constant"() {value = dense<0.000000e+00> : tensor<2x2xf32>} : () -> (tensor<2x2xf32>)
    %2 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %11, %12 = "stablehlo.while"(%2, %1) ({
    ^bb0(%3: tensor<i32>, %4: tensor<2x2xf32>):
      %5 = "stablehlo.constant"() {value = dense<2> : tensor<i32>} : () -> (tensor<i32>)
      %6 = "stablehlo.compare"(%3, %5) {compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<i32>, tensor<i32>) -> (tensor<i1>)
      "stablehlo.return"(%6) : (tensor<i1>) -> ()
    }, {
    ^bb0(%7: tensor<i32>, %8: tensor<2x2xf32>):
      %9 = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> (tensor<i32>)
      %10 = "stablehlo.add"(%7, %9) : (tensor<i32>, tensor<i32>) -> (tensor<i32>)
      "stablehlo.return"(%10, %0) : (tensor<i32>, tensor<2x2xf32>) -> ()
    }) : (tensor<i32>, tensor<2x2xf32>) -> (tensor<i32>, tensor<2x2xf32>)
    %13 = "stablehlo.constant"() {value = dense<0.000000e+00> : tensor<1xf32>} : () -> (tensor<1xf32>)
    %24, %25 = "stablehlo.while"(%2, %13) ({
    ^bb0(%14: tensor<i32>, %15: tensor<1xf32>):
      %16 = "stablehlo.compare"(%14, %11) {compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<i32>, tensor<i32>) -> (tensor<i1>)
      "stablehlo.return"(%16) : (tensor<i1>) -> ()
    }, {
    ^bb0(%17: tensor<i32>, %18: tensor<1xf32>):
      %19 = "stablehlo.dynamic_slice"(%12, %17, %2) {slice_sizes = array<i64: 1, 2>} : (tensor<2x2xf32>, tensor<i32>, tensor<i32>) -> (tensor<1x2xf32>)
      %20 = "stablehlo.reshape"(%19) : (tensor<1x2xf32>) -> (tensor<2xf32>)
      %21 = "stablehlo.dynamic_slice"(%20, %2) {slice_sizes = array<i64: 1>} : (tensor<2xf32>, tensor<i32>) -> (tensor<1xf32>)
      %22 = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> (tensor<i32>)
      %23 = "stablehlo.add"(%17, %22) : (tensor<i32>, tensor<i32>) -> (tensor<i32>)
      "stablehlo.return"(%23, %21) : (tensor<i32>, tensor<1xf32>) -> ()
    }) : (tensor<i32>, tensor<1xf32>) -> (tensor<i32>, tensor<1xf32>)
    "func.return"(%25) : (tensor<1xf32>) -> ()
  }) {sym_name = "main", function_type = (tensor<2x2xf32>) -> (tensor<1xf32>), arg_attrs = [{mhlo.memory_kind = "pinned_host"}], sym_visibility = "public"} : () -> ()
}
