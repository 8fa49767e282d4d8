"""Step functions: NPMPLE, NPMLE and NPMPLGF."""
