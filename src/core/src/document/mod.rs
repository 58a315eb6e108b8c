//! From the text a person wrote to definitions, with every problem in one pass.
