// _levels: the 256 levels of a row whose least element (at most 0) is `low` and greatest (at least 0) `high`.
//
//   Needs: template variable `symmetric`: levels reach as far below zero as above.

struct Levels { per: f32, scale: f32, lowest: f32, highest: f32 }

fn levels_of(low: f32, high: f32) -> Levels {
    $$ if symmetric
    let most = max(-low, high);
    return Levels(select(1.0, 127.0 / most, most > 0.0), select(1.0, most / 127.0, most > 0.0), -127.0, 127.0);
    $$ else
    let per = select(1.0, 255.0 / (high - low), high > low);
    let below = -128.0 + low * per;
    let above = 127.0 + high * per;
    let zero = round(clamp(select(127.0 - high * per, -128.0 - low * per, below + above > 0.0), -128.0, 127.0));
    return Levels(per, 1.0 / per, -128.0 - zero, 127.0 - zero);
    $$ endif
}

fn nearest_level(v: f32, levels: Levels) -> f32 {
    let scaled = v * levels.per;
    $$ if symmetric
    let level = trunc(select(scaled + 0.5, scaled - 0.5, scaled < 0.0));
    $$ else
    let level = round(scaled);
    $$ endif
    return clamp(level, levels.lowest, levels.highest) * levels.scale;
}
