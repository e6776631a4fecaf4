package haproxymodel

import (
	"github.com/haproxytech/client-native/v6/configuration"
	"github.com/haproxytech/client-native/v6/models"
)

var _ = configuration.ParseSection
var _ models.Backend
