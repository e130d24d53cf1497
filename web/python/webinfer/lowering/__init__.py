"""What the lowerings of several backends share. Knows no kernel and no device."""
