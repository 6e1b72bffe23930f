"""What a module means: names, scopes, guards and the devices that flow through it."""
