"""Panel counts and recurrent events: containers, readers, bundled data, simulation."""
