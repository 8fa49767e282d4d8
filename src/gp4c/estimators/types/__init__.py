"""A curve per type of event, with the effects of subjects dependent between types."""
