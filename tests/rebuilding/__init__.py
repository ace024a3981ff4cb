"""Commands about generations in processes that may die at any named moment, and what must hold."""
