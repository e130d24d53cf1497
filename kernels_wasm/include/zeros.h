// What a padded tap reads: zeros for this many channels, four more for a whole vector at the end.
#pragma once

#define ZEROS 256

__attribute__((weak)) const float zeros[ZEROS + 4] = {0};
