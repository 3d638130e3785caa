#include "serve/report/audit.h"

#include <gtest/gtest.h>
