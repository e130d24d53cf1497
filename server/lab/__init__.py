"""The lab of devices: browsers that let a program elsewhere compute in them, over WebSockets.

frames.py says what a message looks like, hub.py brings devices and programs together, store.py keeps what was
measured, guard.py says who may come in, routes.py has the addresses. Models and tensors pass through as bytes: what is
in them nobody looks at here. Imported only where the settings ask for a lab; it needs SQLAlchemy.
"""
