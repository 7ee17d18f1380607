// Live updates and keys. Every page works without this file.
"use strict";
