"""Tests by what they need: unit, contract, integration, acceptance, real_agents, architecture."""
