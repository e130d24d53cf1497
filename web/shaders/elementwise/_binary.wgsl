// _binary: `binary(a, b)`, the formula of the operator's row, after the functions that it asks for.
//
//   a and b are four operands of one type, x_v; the result is four elements of y
//   Needs: bindings a, b and y.

alias x_v = a_v;

$$ if needs_math and not integer
{$ include "_math.wgsl" $}
{$ include "_erf.wgsl" $}
$$ endif
$$ if "power(" in formula
{$ include "_power.wgsl" $}
$$ endif
$$ if integer and ("quotient(" in formula or "modulo(" in formula)
{$ include "_integer_division.wgsl" $}
$$ endif
{{ formula }}
